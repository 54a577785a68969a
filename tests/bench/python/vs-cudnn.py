#!/usr/bin/env python3
# vs-cudnn.py - convolutions against cuDNN: 12 shapes of ViT-B/16, ResNet-50 and Whisper, 32 images.
#
#     vs-cudnn.py [tests/bench/cuda/conv]
#
# cuDNN runs through PyTorch, which selects the fastest algorithm (torch.backends.cudnn.benchmark), in
# f16 with images and results in NHWC ("pixels") and in NCHW ("planes").  Without bias, which PyTorch
# would add in a separate kernel; FT adds one.  Times are of replayed graphs; operands rotate, so that
# they come from memory.  Ratios are cuDNN's time divided by FT's.
#
# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import torch

IMAGES, LAUNCHES, COLD = 32, 24, 300 << 20

SHAPES = [  # name, channels, rows, columns, outputs, kernel, stride, padding
    ("vit-patches", 3, 224, 224, 768, (16, 16), (16, 16), (0, 0)),
    ("3x3-64@56", 64, 56, 56, 64, (3, 3), (1, 1), (1, 1)),
    ("3x3-128@28", 128, 28, 28, 128, (3, 3), (1, 1), (1, 1)),
    ("3x3-256@14", 256, 14, 14, 256, (3, 3), (1, 1), (1, 1)),
    ("3x3-512@7", 512, 7, 7, 512, (3, 3), (1, 1), (1, 1)),
    ("1x1-64-256@56", 64, 56, 56, 256, (1, 1), (1, 1), (0, 0)),
    ("1x1-256-64@56", 256, 56, 56, 64, (1, 1), (1, 1), (0, 0)),
    ("1x1-512-128@28", 512, 28, 28, 128, (1, 1), (1, 1), (0, 0)),
    ("1x1-1024-256@14", 1024, 14, 14, 256, (1, 1), (1, 1), (0, 0)),
    ("1x1-2048-512@7", 2048, 7, 7, 512, (1, 1), (1, 1), (0, 0)),
    ("sound-80-384", 80, 1, 3000, 384, (1, 3), (1, 1), (0, 1)),
    ("sound-384-384", 384, 1, 3000, 384, (1, 3), (1, 2), (0, 1)),
]


def microseconds(shape, layout):
    _, channels, rows, columns, outputs, kernel, stride, padding = shape
    size = IMAGES * 2 * (channels * rows * columns +
                         outputs * rows * columns // (stride[0] * stride[1]))
    count = min(LAUNCHES, COLD // size + 1)
    make = lambda *extent: torch.randn(*extent, device="cuda", dtype=torch.half).contiguous(
        memory_format=layout)
    images = [make(IMAGES, channels, rows, columns) for _ in range(count)]
    weight = make(outputs, channels, *kernel) * 0.05
    run = lambda x: torch.nn.functional.conv2d(x, weight, None, stride, padding)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for x in images:
            run(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            kept = [run(images[i % count]) for i in range(LAUNCHES)]
        times = []
        for i in range(24):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / LAUNCHES)
    del kept
    return sorted(times[4:])[10]


def ours(program):
    times = {}
    for line in subprocess.run([program], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.splitlines():
        words = line.split()
        if len(words) > 4 and words[4] == "us":
            times.setdefault((words[0], words[1]), {})[words[2]] = float(words[3])
    return times


def main():
    torch.backends.cudnn.benchmark = True
    print("cuDNN", torch.backends.cudnn.version(), torch.cuda.get_device_name())
    times = ours(sys.argv[1]) if len(sys.argv) > 1 else {}
    for shape in SHAPES:
        for order, layout in (("pixels", torch.channels_last), ("planes", torch.contiguous_format)):
            best = microseconds(shape, layout)
            text = "%-16s %s  cuDNN %.2f us" % (shape[0], order, best)
            for kind, us in times.get((shape[0], order), {}).items():
                text += "  %s %.2f us: %.2f" % (kind, us, best / us)
            print(text, flush=True)


main()
