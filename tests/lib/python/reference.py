"""reference.py - a test model, its reference results from transformers, and bounds on differences.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import sys

import numpy as np

import st
from tools import Tools

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.environ.get("FT_MODELS", os.path.join(HERE, "../../../../shared/models"))


def arguments(model, about):
    """A parser of the options that these scripts share."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--model", default=os.path.join(MODELS, model))
    return parser


class Check:
    """The model's files, the programs, and whether every bound was met."""

    def __init__(self, args, work):
        self.tools, self.model, self.work = Tools(args.bin), args.model, work
        if not os.path.exists(self.file("reference")):
            sys.exit(f"{self.model}: no reference.safetensors (set FT_MODELS or --model)")
        self.reference = self.read("reference")
        self.passed = True

    def file(self, name):
        return os.path.join(self.model, name + ".safetensors")

    def read(self, name):
        return st.read(self.file(name))

    def artifact(self, name):
        return os.path.join(self.work, name + ".ft")

    def inputs(self, **tensors):
        """A file of these inputs."""
        path = os.path.join(self.work, "inputs.safetensors")
        st.write(path, tensors)
        return path

    def run(self, artifact, inputs, *args):
        """Outputs of ft-run by name."""
        path = os.path.join(self.work, "out.safetensors")
        self.tools.run("ft-run", "-i", artifact, "-d", inputs, "-o", path, "-f", *args)
        return {name: np.array(value) for name, value in st.read(path).items()}

    def bound(self, kept):
        """'yes' or 'NO' for a table; a missed bound fails the script."""
        self.passed = self.passed and bool(kept)
        return "yes" if kept else "**NO**"

    def row(self, name, difference, bound):
        """A row of a table of differences."""
        print(f"| {name} | {difference:.2e} | {bound:g} | {self.bound(difference <= bound)} |",
              flush=True)


def largest_difference(found, expected):
    """NaN if the shapes differ or a value is NaN, which no bound accepts."""
    if found.shape != expected.shape:
        print(f"shape {found.shape}, expected {expected.shape}", file=sys.stderr)
        return float("nan")
    return float(np.abs(found.astype(np.float64) - expected).max())
