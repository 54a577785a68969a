#!/usr/bin/env python3
# vs-cudnn-attention.py - f16 attention against cuDNN: encoders, and causal prefill of one prompt.
#
#     vs-cudnn-attention.py [tests/bench/cuda/attention [tests/bench/cuda/attend_kv]]
#
# cuDNN runs through PyTorch's scaled_dot_product_attention, on [sequences, tokens, heads, head size]
# without padding.  Each shape runs on both, one after the other.  Times are of replayed graphs;
# operands rotate, so that they come from memory.  Ratios are cuDNN's time divided by FT's.
#
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

LAUNCHES, COLD, MOST = 24, 120e6, 24

ENCODERS = [  # sequences, length, heads, head size
    (1, 128, 12, 64), (8, 128, 12, 64), (32, 128, 12, 64), (128, 128, 12, 64), (32, 256, 12, 64),
    (32, 384, 12, 64), (16, 512, 12, 64), (8, 1024, 12, 64), (2, 4096, 12, 64),
    (4, 1024, 32, 128), (1, 4096, 32, 128),
]
PROMPTS = [512, 2048, 8192]  # of 32 heads of 128


def cudnn(sequences, length, heads, head_size, causal):
    size = 8.0 * sequences * length * heads * head_size
    count = min(MOST, int(COLD / size) + 2)
    make = lambda: torch.randn(sequences, length, heads, head_size, device="cuda",
                               dtype=torch.half).transpose(1, 2)
    sets = [(make(), make(), make()) for _ in range(count)]
    run = lambda i: torch.nn.functional.scaled_dot_product_attention(*sets[i % count],
                                                                     is_causal=causal)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        run(0)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [run(i) for i in range(LAUNCHES)]
        times = []
        for i in range(33):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / LAUNCHES)
    del kept
    return sorted(times[3:])[15]


def lines_of(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.splitlines()


def encoder(program, sequences, length, heads, head_size):
    for line in lines_of(program, heads, head_size, sequences, length):
        found = re.match(r"f16 .*: +([\d.]+) us, overlapped +([\d.]+);", line)
        if found:
            return min(float(found[1]), float(found[2]))
    raise SystemExit("%s printed no f16 time" % program)


def prompts(program):
    times = {}
    for line in lines_of(program, 32, 32, 128):
        found = re.match(r"prompt f16 +1 x +(\d+), .*: +([\d.]+) us, .*\((\d+) rows\)", line)
        if found and found[1] == found[3]:
            times[int(found[1])] = float(found[2])
    return times


def report(name, best, ours):
    text = "%-28s cuDNN %8.2f us" % (name, best)
    print(text if ours is None else "%s  FT %8.2f us: %.2f" % (text, ours, best / ours), flush=True)


def main():
    print("cuDNN", torch.backends.cudnn.version(), torch.cuda.get_device_name())
    for shape in ENCODERS:
        ours = encoder(sys.argv[1], *shape) if len(sys.argv) > 1 else None
        report("%d x %d, %d heads of %d" % shape, cudnn(*shape, False), ours)
    ours = prompts(sys.argv[2]) if len(sys.argv) > 2 else {}
    for length in PROMPTS:
        report("prompt of %d, 32 heads of 128" % length, cudnn(1, length, 32, 128, True),
               ours.get(length))


main()
