#!/usr/bin/env python3
"""table-groupwise.py --bin BUILD - quality of each group-wise quantization method on python-llama.

Artifacts of w4a16 and w8a16, symmetric and asymmetric, are made with every method: nearest rounding,
clipped grids, imatrix, AWQ, GPTQ and all together.  Their perplexity on the reference text is
compared with the float model's, with the standard error of the difference over its rows, the mean
KL divergence from the float model, and the agreement of the likeliest token.  Samples are those of
calibration.safetensors, which is other text.  Prints a Markdown table; exit status 1 when a bound is
missed: 8 bits cost at most 0.1 %, 4 bits with the best method at most 2.5 %, and no method has a
larger KL divergence than nearest rounding, nor a perplexity more than a standard error above its.

Perplexity is noisy: artifacts of equal quality differ by up to a per cent either way, because errors
of either sign meet one text.  KL is not, so methods are compared by it.

The model is in --model, by default $FT_MODELS/python-llama.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments  # noqa: E402

WAYS = {                    # name in the table: arguments of ft-calibrate
    "nearest": (),
    "clip mse": ("--clip", "mse"),
    "imatrix": ("--clip", "imatrix"),
    "AWQ": ("--scale", "awq"),
    "GPTQ": ("--round", "gptq"),
    "imatrix, GPTQ": ("--clip", "imatrix", "--round", "gptq"),
    "imatrix, GPTAQ": ("--clip", "imatrix", "--round", "gptaq"),
    "AWQ, imatrix": ("--scale", "awq", "--clip", "imatrix"),
    "AWQ, imatrix, GPTQ": ("--scale", "awq", "--clip", "imatrix", "--round", "gptq"),
}
GRIDS = {"symmetric": (), "asymmetric": ("--asym",)}
BITS = {"w8a16": 0.1, "w4a16": 2.5}     # % above float in the best way
KL_SCATTER = 1.02                       # between artifacts of equal quality


class Table(Check):
    """Artifacts of one model, each evaluated once."""

    def __init__(self, args, work):
        super().__init__(args, work)
        self.options = ("-d", self.file("calibration"), "--samples", args.samples,
                        "--group", args.group, "-t", args.threads)
        self.threads = ("-t", args.threads)
        self.tools.run("ft-convert", "-i", self.model, "-o", self.artifact("float"))
        self.float_nll = self.judge("float")[0]

    def judge(self, name, *args):
        """Mean NLL of each row, and the other output of ft-eval."""
        out = json.loads(self.tools.run("ft-eval", "-i", self.artifact(name), "--json", "-d",
                                        self.file("reference"), *self.threads, *args))
        return np.array(out["nll"]) / (self.reference["input_ids"].shape[1] - 1), out

    def make(self, *args):
        data = self.options if set(args) & {"imatrix", "awq", "gptq", "gptaq"} else self.options[4:]
        self.tools.run("ft-calibrate", "-q", "-f", "-i", self.artifact("float"), "-o",
                       self.artifact("codes"), *data, *args)


def add_row(table, scheme, grids, name, nearest):
    """A line of the table; returns the excess of perplexity over float in %, and KL."""
    table.make("--scheme", scheme, *GRIDS[grids], *WAYS[name])
    nll, out = table.judge("codes", "--against", table.artifact("float"))
    above = nll - table.float_nll
    excess = 100 * np.expm1(above.mean())
    error = 100 * above.std(ddof=1) / len(above) ** 0.5
    distance = out["kl_mean"]
    kept = table.bound(nearest is None or (distance <= KL_SCATTER * nearest[1] and
                                           excess <= nearest[0] + error))
    print(f"| {scheme} | {grids} | {name} | {np.exp(nll.mean()):.4f} | {excess:+.2f} % | "
          f"{error:.2f} % | {distance:.5f} | {100 * out['top1_agreement']:.2f} % | {kept} |",
          flush=True)
    return excess, distance


def add_scheme(table, scheme, most):
    best = None
    for grids in GRIDS:
        nearest = None
        for name in WAYS:
            found = add_row(table, scheme, grids, name, nearest)
            nearest = found if nearest is None else nearest
            if best is None or found[0] < best[0]:
                best = (found[0], f"{grids}, {name}")
    return f"{scheme}: best {best[0]:+.2f} % ({best[1]}), bound {most:g} %: " \
           f"{table.bound(best[0] <= most)}"


def main():
    parser = arguments("python-llama", "compare group-wise quantization methods")
    parser.add_argument("--samples", default="256", help="of the calibration data")
    parser.add_argument("--group", default="32")
    parser.add_argument("--schemes", nargs="+", choices=BITS, default=list(BITS))
    parser.add_argument("--threads", default=str(os.cpu_count()))
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with tempfile.TemporaryDirectory() as work:
        table = Table(args, work)
        print(f"Float: perplexity {np.exp(table.float_nll.mean()):.5f}; group {args.group}, "
              f"{args.samples} samples.\n")
        print("| scheme | grids | codes | perplexity | above float | s.e. | KL | same token "
              "| no worse than nearest |\n|---|---|---|---|---|---|---|---|---|")
        results = [add_scheme(table, scheme, BITS[scheme]) for scheme in args.schemes]
        print("", *results, sep="\n")
        sys.exit(0 if table.passed else 1)


if __name__ == "__main__":
    main()
