#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make amax-modelopt.tsv: what NVIDIA ModelOpt's HistogramCalibrator chooses, all data in one collect().

    pip install torch==2.6.0 'nvidia-modelopt[torch]==0.27.1' onnx scipy
    python make-amax.py > amax-modelopt.tsv

Version 0.27.1, because from 0.29.0 to (at least) 0.47.0 the calibrator's own mse method hands the
number of bits to the wrong parameter and always returns its first candidate.  Histograms,
percentiles and entropy of 0.47.0 with torch 2.15.0 were compared: `--without-mse` makes that list.

The inputs are functions of whole numbers by exactly rounded operations, so that method-t.c
computes the same bits.
"""
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def draws(n, seed):
    """n uniform numbers k / 2^20."""
    s, u = seed, np.empty(n)
    for i in range(n):
        s = (1664525 * s + 1013904223) & 0xFFFFFFFF
        u[i] = (s >> 12) / 2.0**20
    return u


def bell(n, seed, outlier=1.0):
    """Bell-shaped on [-1.5, 1.5], every 997th value times `outlier`; in double."""
    u = draws(3 * n, seed)
    x = u[0::3] + u[1::3] + u[2::3] - 1.5
    x[996::997] *= outlier
    return x


def heavy(n, seed):
    """Heavy tails on both sides."""
    u = draws(2 * n, seed)
    return (u[0::2] - 0.5) / (u[1::2] + 0.015625)


def spiky(n, seed):
    """Like rows of a softmax: most near 0, some 1."""
    x = draws(n, seed)
    for _ in range(4):
        x = x * x
    x[::256] = 1.0
    return x


def subnormal(n, seed):
    """Multiples of 2^-149 under 2^-129."""
    return draws(n, seed) * 2.0**20 * 2.0**-149


def grid(top):
    """Each exact edge of the bins on [0, top]."""
    return np.arange(2049) * top / 2048.0


def f32(x):
    return np.asarray(x, dtype=np.float64).astype(np.float32)


def f16(x):
    return f32(x).astype(np.float16).astype(np.float32)


def bf16(x):
    bits = f32(x).view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32)


THIRD = 1.0 / 3.0
FLOOR = float(np.float32(-0.17))
MAX3 = float(np.float32(3.3))

INPUTS = {
    "vector-A": lambda: f32(bell(65536, 1, 8)),
    "vector-B": lambda: f32(bell(65536, 7)),
    "vector-G": lambda: f32(np.concatenate([bell(32768, 3), bell(32768, 5, 8)])),
    "bell": lambda: f32(bell(65536, 13) * THIRD),
    "bell-outliers-8": lambda: f32(bell(65536, 17, 8) * THIRD),
    "bell-outliers-100": lambda: f32(bell(65536, 19, 100) * THIRD),
    "heavy": lambda: f32(heavy(65536, 23)),
    "uniform": lambda: f32((draws(65536, 29) - 0.5) * THIRD),
    "one-sided": lambda: f32(np.maximum(bell(65536, 31) * THIRD, 0)),
    "floor": lambda: f32(np.maximum(bell(65536, 37) * 4 * THIRD, FLOOR)),
    "softmax": lambda: f32(spiky(65536, 41)),
    "zeros-first": lambda: f32(np.concatenate([np.zeros(20000), bell(20000, 43)])),
    "zeros": lambda: f32(np.zeros(1000)),
    "negative-zeros": lambda: f32(np.concatenate([-np.zeros(1000), bell(1000, 47)])),
    "equal": lambda: f32(np.full(1000, 0.3)),
    "one": lambda: f32([2.5]),
    "n-127": lambda: f32(bell(127, 53)),
    "two-values": lambda: f32(np.concatenate([np.full(900, 0.1), np.full(100, -0.7)])),
    "edges-exact": lambda: f32(grid(4.0)),
    "edges-rounded": lambda: f32(grid(MAX3)),
    "f16-subnormal": lambda: f32(np.floor(draws(20000, 59) * 1024) * 2.0**-24),
    "subnormal-mixed": lambda: f32(np.concatenate([subnormal(5000, 61), bell(5000, 67)])),
    "f16-largest": lambda: f16(np.concatenate([bell(50000, 71) * 20000, [65504.0]])),
    "f16-many": lambda: f16(bell(300000, 73, 8)),
    "bf16-many": lambda: bf16(bell(300000, 79, 8)),
    "f32-many": lambda: f32(bell(300000, 83, 8) * THIRD),
}


def fnv(numbers):
    """FNV-1a of an array's bytes."""
    h = 0xCBF29CE484222325
    for byte in numbers.tobytes():
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def place(value, where):
    found = np.nonzero(where == np.float32(value))[0]
    return found[0] if len(found) else "-"


def main():
    import modelopt
    import scipy
    import torch
    from modelopt.torch.quantization.calib import HistogramCalibrator, MaxCalibrator

    print("# What NVIDIA ModelOpt's calibrators choose; made by make-amax.py with")
    print(f"# modelopt {modelopt.__version__}, torch {torch.__version__}, "
          f"numpy {np.__version__}, scipy {scipy.__version__}, on the CPU")
    print("# input\tmethod\tindex\tamax")
    print("# input\tvalues\tFNV-1a of their bytes\tnumber of values")
    print("# input\thistogram\tFNV-1a of its counts as 64-bit numbers\tlast edge")
    for name, make in INPUTS.items():
        x = make()
        print(name, "values", fnv(x.astype("<f4")), len(x), sep="\t")
        largest = MaxCalibrator()
        largest.collect(torch.from_numpy(x))
        print(name, "max", "-", f"{largest.compute_amax().item():.9g}", sep="\t")
        calibrator = HistogramCalibrator(num_bins=2048)
        calibrator.collect(torch.from_numpy(x))
        counts = calibrator._calib_hist.numpy()
        edges = calibrator._calib_bin_edges.numpy()
        centres = (edges[1:] + edges[:-1]) / np.float32(2)
        print(name, "histogram", fnv(counts.astype("<u8")), f"{edges[-1]:.9g}", sep="\t")
        for p in (99, 99.9, 99.99, 99.999):
            amax = calibrator.compute_amax("percentile", percentile=p).item()
            print(name, f"percentile-{p}", place(amax, edges), f"{amax:.9g}", sep="\t")
        if "--without-mse" not in sys.argv:
            amax = calibrator.compute_amax("mse").item()
            print(name, "mse", place(amax, centres), f"{amax:.9g}", sep="\t")
        amax = calibrator.compute_amax("entropy").item()
        print(name, "entropy", place(amax, edges), f"{amax:.9g}", sep="\t")


if __name__ == "__main__":
    main()
