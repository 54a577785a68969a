#!/usr/bin/env python3
"""table-int8.py --bin BUILD [--model FOLDER] - what each method of int8 quantization gains and costs.

Artifacts of one decoder or classifier are made with each method alone and with several together:
finer ranges, SmoothQuant, scales per token, scales per group, AWQ, imatrix, GPTQ and GPTAQ; and with
the default plans of mixed precision.  Held-out rows judge them: the perplexity of a decoder with the
standard error of its difference from float over rows, or the accuracy of a classifier; the mean KL
divergence from float; and whether the likeliest token or class is float's.  Time is processor time
of ft-calibrate, memory its largest resident set.  Prints a Markdown table; exit status 1 when a
default plan misses its bound: a decoder loses at most 0.15 % of perplexity with scales per token and
0.5 % with static ones, a classifier 0.005 of accuracy.

The model is in --model, by default $FT_MODELS/python-llama.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments  # noqa: E402

STATIC = ("--target", "none")
DYNAMIC = ("--scheme", "w8a8-dynamic", "--target", "none")
GROUPS = ("--scheme", "w8a8-block")
PLAIN = ("--smooth", "none")
WAYS = {                    # name in the table: arguments of ft-calibrate
    "static": (*STATIC, *PLAIN, "-m", "max"),
    "static, finer ranges": (*STATIC, *PLAIN),
    "static, finer ranges, SmoothQuant": (*STATIC, "--smooth", "search"),
    "per token": (*DYNAMIC, *PLAIN),
    "per token, SmoothQuant": (*DYNAMIC, "--smooth", "search"),
    "per token, ffn.down per group": (*DYNAMIC, *PLAIN, "--tensor", "ffn.down=w8a8-block"),
    "per token, SmoothQuant, ffn.down per group": (*DYNAMIC, "--smooth", "search", "--tensor",
                                                   "ffn.down=w8a8-block"),
    "per group": GROUPS,
    "per group, AWQ": (*GROUPS, "--scale", "awq"),
    "per group, imatrix": (*GROUPS, "--clip", "imatrix"),
    "per group, GPTQ": (*GROUPS, "--round", "gptq"),
    "per group, GPTAQ": (*GROUPS, "--round", "gptaq"),
    "per group, imatrix, GPTQ": (*GROUPS, "--clip", "imatrix", "--round", "gptq"),
    "per group, AWQ, imatrix, GPTQ": (*GROUPS, "--scale", "awq", "--clip", "imatrix", "--round",
                                      "gptq"),
    "default of w8a8": (),
    "default of w8a8-dynamic": ("--scheme", "w8a8-dynamic"),
}
MOST = {"default of w8a8": 0.5, "default of w8a8-dynamic": 0.15}    # % of perplexity above float
MOST_ACCURACY = 0.005                                               # below float


def measured(command):
    """Runs a command; its processor time in seconds and its largest resident set in MB."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)}\n{log.read().decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Table(Check):
    """Artifacts of one model, each evaluated once."""

    def __init__(self, args, work):
        super().__init__(args, work)
        self.options = ("-d", self.file("calibration"), "--samples", args.samples, "-t",
                        args.threads)
        self.threads = ("-t", args.threads)
        self.tools.run("ft-convert", "-i", self.model, "-o", self.artifact("float"))
        self.float = self.judge("float")
        self.is_decoder = "perplexity" in self.float

    def judge(self, name, *args):
        return json.loads(self.tools.run("ft-eval", "-i", self.artifact(name), "--json", "-d",
                                         self.file("reference"), *self.threads, *args))

    def make(self, *args):
        needs_data = args[:len(GROUPS)] != GROUPS or len(args) > len(GROUPS)
        data = self.options if needs_data else self.threads
        return measured([self.tools.path("ft-calibrate"), "-q", "-f", "-i", self.artifact("float"),
                         "-o", self.artifact("int8"), *data, *args])

    def perplexity(self, found):
        """Columns of the table, and % above float."""
        tokens = self.reference["input_ids"].shape[1] - 1
        above = (np.array(found["nll"]) - np.array(self.float["nll"])) / tokens
        excess = 100 * np.expm1(above.mean())
        error = 100 * above.std(ddof=1) / len(above) ** 0.5
        return f"{excess:+.2f} % | {error:.2f} %", excess

    def add_row(self, name):
        seconds, memory = self.make(*WAYS[name])
        found = self.judge("int8", "--against", self.artifact("float"))
        if self.is_decoder:
            columns, excess = self.perplexity(found)
            kept = excess <= MOST.get(name, float("inf"))
        else:
            columns = f"{found['accuracy']:.4f}"
            kept = name not in MOST or found["accuracy"] >= self.float["accuracy"] - MOST_ACCURACY
        bound = self.bound(kept) if name in MOST else ""
        print(f"| {name} | {columns} | {found['kl_mean']:.2g} | "
              f"{100 * found['top1_agreement']:.2f} % | {seconds:.1f} s | {memory:.0f} MB | {bound} |",
              flush=True)


def main():
    parser = arguments("python-llama", "compare methods of int8 quantization")
    parser.add_argument("--samples", default="64", help="of the calibration data")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY",
                        help="rows of the table; default all")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        table = Table(args, work)
        score = "above float | s.e." if table.is_decoder else "accuracy"
        print(f"{os.path.basename(table.model)}, {args.samples} samples\n\n| method | {score} | KL | "
              "same top | time | memory | within its bound |\n|---" +
              "|---" * (7 if table.is_decoder else 6) + "|")
        for name in args.ways:
            table.add_row(name)
        sys.exit(0 if table.passed else 1)


if __name__ == "__main__":
    main()
