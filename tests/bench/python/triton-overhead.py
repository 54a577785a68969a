#!/usr/bin/env python3
"""What Triton Inference Server adds to an embedding: its own statistics, and a keep-alive client.

    FT_BUILDDIR=BUILD FT_SRCDIR=SOURCES FT_TRITON_SERVER=UNPACKED-WHEEL \\
        python3 tests/bench/python/triton-overhead.py [ARTIFACT] [TEXT]

Needs `make triton`, `make check TESTS=` and tritonclient[http].  Prints microseconds of one client,
and requests per second of 32.

SPDX-License-Identifier: Apache-2.0
"""
import http.client
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["FT_SRCDIR"], "tests/triton"))
from support import Server, add_model, artifact  # noqa: E402

REQUESTS, CLIENTS = 2000, 32


def percentile(values, part):
    return sorted(values)[int(part * (len(values) - 1))]


class Client:
    """A keep-alive connection."""

    def __init__(self, server, text):
        host, port = server.http.split(":")
        self.connection = http.client.HTTPConnection(host, int(port))
        self.body = json.dumps({"inputs": [{"name": "text_input", "datatype": "BYTES",
                                            "shape": [1, 1], "data": [text]}]})

    def ask(self):
        self.connection.request("POST", "/v2/models/model/infer", self.body)
        self.connection.getresponse().read()


def nanoseconds(server):
    found = server.statistics("model")["inference_stats"]
    return {name: found[name]["ns"] for name in
            ("success", "queue", "compute_input", "compute_infer", "compute_output")}


def one_client(server, text):
    """Differences of the statistics around each request."""
    client, times, overhead, parts = Client(server, text), [], [], []
    for _ in range(200):
        client.ask()
    before = nanoseconds(server)
    for _ in range(REQUESTS):
        start = time.perf_counter_ns()
        client.ask()
        times.append((time.perf_counter_ns() - start) / 1e3)
        after = nanoseconds(server)
        parts.append({name: (after[name] - before[name]) / 1e3 for name in after})
        overhead.append(parts[-1]["success"] - parts[-1]["compute_infer"])
        before = after
    print(f"request minus compute   p50 {percentile(overhead, 0.5):7.1f} us   "
          f"p99 {percentile(overhead, 0.99):7.1f} us   (statistics of the server)")
    for name in parts[0]:
        print(f"  {name:14s}        p50 {percentile([part[name] for part in parts], 0.5):7.1f} us")
    print(f"request at the client   p50 {percentile(times, 0.5):7.1f} us   "
          f"p99 {percentile(times, 0.99):7.1f} us")


def many_clients(server, text):
    clients, counts, end = [Client(server, text) for _ in range(CLIENTS)], [], []

    def work(client):
        count = 0
        while not end:
            client.ask()
            count += 1
        counts.append(count)

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(5)
    end.append(True)
    for thread in threads:
        thread.join()
    print(f"{CLIENTS} clients of Python     {sum(counts) / 5:7.0f} requests/s")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else artifact("embedder")
    text = sys.argv[2] if len(sys.argv) > 2 else "a b c d"
    add_model("model", path, "")
    server = Server()
    if not server.start():
        sys.exit(server.log_text())
    one_client(server, text)
    many_clients(server, text)
    server.kill()


main()
