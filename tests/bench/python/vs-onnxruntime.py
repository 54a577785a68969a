#!/usr/bin/env python3
"""vs-onnxruntime.py --bin BUILD - one encoder, timed in ONNX Runtime and in this project.

A BERT of the size of bert-base (random weights) runs on 8 x 128 and 1 x 128 tokens with two
threads.  ONNX Runtime gets every variant of tests/lib/python/ort_variants.py; the three fastest int8
variants and the fastest float32 one are then timed against FT, in alternating blocks so that all
meet the same load.  The script first checks that both float32 results agree, so that both do the
same computation.

The minimum is the reliable figure on a machine with other load, which only adds time.  The median is
printed too.  ONNX Runtime keeps its defaults (threads spin).

Needs numpy, onnx, onnxruntime, sympy.  --work DIR keeps checkpoint and graphs for the next run
(2 GiB).  --ort-only needs no build.  Exit status 1: the float32 results differ.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
import bert_onnx  # noqa: E402
import ort_variants  # noqa: E402
import st  # noqa: E402
from alternating import Contender, Times, alternate, time_ort, time_ours  # noqa: E402
from tools import Tools, machine  # noqa: E402

LENGTH = 128
SAMPLES = 16            # calibration sequences for static quantization: timing needs no more
AGREE = 1e-3            # float32 sums of 12 layers in two orders; values are about 1
UNREST = 1.25           # median / minimum above which other programs were at work


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def prepare(work):
    """Checkpoint, inputs by number of rows, and ONNX Runtime's variants."""
    folder = os.path.join(work, "checkpoint")
    if not os.path.exists(os.path.join(folder, "inputs-1x128.safetensors")):
        subprocess.run([sys.executable, os.path.join(HERE, "make-bert.py"), folder], check=True)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights = st.read(os.path.join(folder, "model.safetensors"))
    samples = st.read(os.path.join(folder, "calibration.safetensors"))["input_ids"][:SAMPLES]
    inputs = {rows: st.read(inputs_path(folder, rows))["input_ids"].astype(np.int64)
              for rows in (8, 1)}
    feeds = [{"input_ids": samples[i:i + 4].astype(np.int64)} for i in range(0, len(samples), 4)]
    variants = ort_variants.make(work, lambda: bert_onnx.build(weights, config, LENGTH), config,
                                 feeds)
    return folder, inputs, variants


def inputs_path(folder, rows):
    return os.path.join(folder, f"inputs-{rows}x{LENGTH}.safetensors")


def screen(variants, inputs, args):
    """Times every variant, alternating.  Returns { rows: { variant: Times } } and prints the table."""
    sessions = {v: v.open(args.threads) for v in variants}
    times = {rows: {v: Times() for v in variants} for rows in inputs}
    for _ in range(args.rounds):
        for v, session in sessions.items():
            for rows, ids in inputs.items():
                times[rows][v].add(*time_ort(session, {"input_ids": ids}, 16 // rows))
    expected = sessions[variants[0]].run(None, {"input_ids": inputs[8]})[0]

    print("| ONNX Runtime | 8x128 min | median | 1x128 min | median | cosine with float32 |")
    print("|---|---|---|---|---|---|")
    for v, session in sessions.items():
        result = session.run(None, {"input_ids": inputs[8]})[0]
        figures = " | ".join(f"{times[rows][v].least:.1f} | {times[rows][v].median:.1f}"
                             for rows in (8, 1))
        print(f"| {v.name} | {figures} | {cosine(result, expected):.5f} |", flush=True)
    return times, expected


def fastest(times, int8, count):
    return sorted((v for v in times if v.int8 == int8), key=lambda v: times[v].least)[:count]


def make_ours(tools, folder, work):
    """The float and the int8 artifact of the same checkpoint."""
    paths = os.path.join(work, "base.ft"), os.path.join(work, "base.int8.ft")
    tools.run("ft-convert", "-i", folder, "-o", paths[0], "-f")
    tools.run("ft-calibrate", "-i", paths[0], "-o", paths[1], "-f",
              "-d", os.path.join(folder, "calibration.safetensors"))
    return paths


def compare_results(tools, artifacts, folder, work, expected):
    """Largest difference of the float results, and int8's cosine; ends the script if too far."""
    results = []
    for artifact in artifacts:
        path = os.path.join(work, "out.safetensors")
        tools.run("ft-run", "-i", artifact, "-d", inputs_path(folder, 8), "-o", path, "-f")
        results.append(np.array(st.read(path)["last_hidden_state"]).reshape(expected.shape))
    difference = float(np.abs(results[0] - expected).max())
    print(f"\nfloat32 results: largest difference {difference:.2e} (at most {AGREE:g}); "
          f"our int8: cosine with float32 {cosine(results[1], expected):.5f}")
    if not difference <= AGREE:
        sys.exit("the float32 results differ: the programs do not compute the same thing")


def contenders(tools, artifacts, rows, ids, rivals, args):
    def ort(variant):
        session = variant.open(args.threads)
        return Contender("ONNX Runtime", variant.int8, f"ONNX Runtime, {variant.name}",
                         lambda: time_ort(session, {"input_ids": ids}, args.runs))

    def ours(artifact, int8):
        return Contender("ours", int8, "ours, int8" if int8 else "ours, float32",
                         lambda: time_ours(tools, artifact, (rows, LENGTH), args.threads,
                                           args.runs))

    return [*map(ort, rivals), ours(artifacts[0], False), ours(artifacts[1], True)]


def print_duel(rows, field):
    def best(side, int8):
        return min((c.times for c in field if (c.side, c.int8) == (side, int8)),
                   key=lambda times: times.least)

    print(f"\n| {rows} x {LENGTH} tokens | ms min | ms median |\n|---|---|---|")
    for c in field:
        print(f"| {c.label} | {c.times.least:.2f} | {c.times.median:.2f} |")
    ort, ort_int8, ours, ours_int8 = (best(side, int8) for side in ("ONNX Runtime", "ours")
                                      for int8 in (False, True))
    for text, slow, fast in (("ONNX Runtime's best int8 / our int8", ort_int8, ours_int8),
                             ("our float32 / our int8", ours, ours_int8),
                             ("ONNX Runtime's float32 / our float32", ort, ours)):
        print(f"| {text} | {slow.least / fast.least:.2f} x | {slow.median / fast.median:.2f} x |",
              flush=True)
    unrest = max(t.median / t.least for t in (ort, ort_int8, ours, ours_int8))
    if unrest > UNREST:
        print(f"\nThe machine was busy: a median is {unrest:.1f} times its minimum.")


def run(args, work):
    tools = Tools(args.bin)
    folder, inputs, variants = prepare(work)
    print(f"{machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; "
          f"{args.threads} threads; ONNX Runtime {onnxruntime.__version__}\n")
    times, expected = screen(variants, inputs, args)
    if args.ort_only:
        return
    artifacts = make_ours(tools, folder, work)
    compare_results(tools, artifacts, folder, work, expected)
    for rows, ids in inputs.items():
        rivals = fastest(times[rows], False, 1) + fastest(times[rows], True, 3)
        field = contenders(tools, artifacts, rows, ids, rivals, args)
        alternate(field, args.rounds)
        print_duel(rows, field)


def main():
    parser = argparse.ArgumentParser(description="time one encoder in ONNX Runtime and in ours")
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--work", help="folder that keeps the checkpoint and the graphs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each program")
    parser.add_argument("--runs", type=int, default=10, help="runs in a block")
    parser.add_argument("--ort-only", action="store_true", help="time ONNX Runtime alone")
    args = parser.parse_args()
    if not args.ort_only:
        Tools(args.bin).path("encoder")  # missed now rather than after minutes of ONNX Runtime
    if args.work:
        os.makedirs(args.work, exist_ok=True)
        run(args, args.work)
        return
    with tempfile.TemporaryDirectory() as work:
        run(args, work)


if __name__ == "__main__":
    main()
