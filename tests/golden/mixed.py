"""mixed.py - the numbers that tensors of random models are made of, anywhere alike.

make-llama.py describes them; tests/lib/models/mixed.h makes the same.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib

import numpy as np


def mixed(text, count):
    """The numbers k of the first `count` elements of a tensor."""
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(h) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(56)).astype(np.int64) - 128


def digest(tensors):
    """The SHA-256 of names and elements, in the order of names."""
    sums = hashlib.sha256()
    for name in sorted(tensors):
        sums.update(name.encode() + b"\n" + tensors[name].numpy().tobytes())
    return sums.hexdigest()
