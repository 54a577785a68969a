"""CPU time of a call for one short text, with the session of the call before it and with a new one.

    text-call.py MODEL.ft [CALLS]

Prints "us REUSED OPENED RATIO", medians of CALLS calls of embed(), or of classify() of a model without
embeddings, on one thread.  Both kinds of calls take turns.

SPDX-License-Identifier: Apache-2.0
"""
import statistics
import sys
import time

import ftruntime as ft

TEXT = "int main(void) { return 0; }"


def cpu_us(function):
    begin = time.process_time()
    function(TEXT)
    return 1e6 * (time.process_time() - begin)


def main():
    model = ft.Model.open(sys.argv[1], threads=1)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    function = model.classify if model.labels else model.embed
    reused, opened = [], []
    for _ in range(count):
        model._sessions = type(model._sessions)()
        opened.append(cpu_us(function))
        reused.append(cpu_us(function))
    with_session, without = statistics.median(reused), statistics.median(opened)
    print(f"us {with_session:.0f} {without:.0f} {without / with_session:.2f}")


if __name__ == "__main__":
    main()
