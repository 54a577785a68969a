"""Time of a forward pass with bound buffers, and of importing ftruntime.

    bound-run.py MODEL.ft [RUNS]

Prints "us MEDIAN MIN" of RUNS passes, as tests/bench/bound_run does in C, and "import_ms MEDIAN" of the
CPU time of 20 processes that import ftruntime, less those that import nothing.  The model is a small
classifier.

SPDX-License-Identifier: Apache-2.0
"""
import os
import statistics
import subprocess
import sys
import time

import ftruntime as ft
import numpy as np


def passes(path, count):
    """Microseconds of each pass, sorted."""
    model = ft.Model.open(path, threads=1)
    ids = np.array([[2, 5, 6, 3]], "int32")
    logits = np.empty((1, len(model.labels)), "float32")
    run = model.session().bind({"input_ids": ids}, {"logits": logits}).run
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        run()
        found.append(1e6 * (time.perf_counter() - begin))
    return sorted(found)


def start(program):
    """Milliseconds of CPU time of a process that runs a program."""
    process = subprocess.Popen([sys.executable, "-c", program])
    used = os.wait4(process.pid, 0)[2]
    return 1e3 * (used.ru_utime + used.ru_stime)


def main():
    us = passes(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000)
    print(f"us {us[len(us) // 2]:.2f} {us[0]:.2f}")
    pairs = [(start("pass"), start("import ftruntime")) for _ in range(20)]
    bare, whole = (statistics.median(times) for times in zip(*pairs))
    print(f"import_ms {whole - bare:.1f} (python {bare:.1f})")


if __name__ == "__main__":
    main()
