"""alternating.py - times of ONNX Runtime and of this project's encoders, in alternating blocks.

SPDX-License-Identifier: Apache-2.0
"""
import re
import sys
import time

import numpy as np

PAUSE_S = 0.2           # lets the threads of the side that ran last go to sleep


class Times:
    """Milliseconds of single runs, collected block by block."""

    def __init__(self):
        self.blocks = []

    def add(self, median, least):
        self.blocks.append((median, least))

    @property
    def median(self):
        return float(np.median([median for median, _ in self.blocks]))

    @property
    def least(self):
        return min(least for _, least in self.blocks)


def time_ort(session, feed, runs):
    """(median, least) ms of `runs` runs after a warm-up run."""
    times = []
    session.run(None, feed)
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times)), min(times)


def time_ours(tools, artifact, shape, threads, runs):
    """The same of an artifact, on (sequences, tokens) random ids."""
    rows, length = shape
    text = tools.run("encoder", artifact, "-b", rows, "-l", length, "-t", threads, "-r", runs)
    numbers = re.findall(r"\d+\.?\d*(?:e[+-]?\d+)?", text)
    if len(numbers) < 2:
        sys.exit(f"encoder: expected a line with median and minimum, found: {text.strip()!r}")
    median, least = map(float, numbers[-2:])
    return median, least


class Contender:
    """One program and its times; block() measures (median, least) of some runs."""

    def __init__(self, side, int8, label, block):
        self.side, self.int8, self.label, self.block = side, int8, label, block
        self.times = Times()


def alternate(field, rounds):
    """Time the contenders in turns, so that all meet the same load."""
    for _ in range(rounds):
        for contender in field:
            time.sleep(PAUSE_S)
            contender.times.add(*contender.block())
