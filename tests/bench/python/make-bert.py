#!/usr/bin/env python3
"""make-bert.py OUTDIR - a BERT checkpoint with random weights, and inputs for it.

Speed does not depend on training, so benchmarks need no trained checkpoint of this size.  The
values are those of a freshly initialised encoder (normal, 0.02), except that no bias or LayerNorm
gain has its trivial value: an implementation that omits one gives a different result.  The same
arguments give the same bytes.

Written: config.json, model.safetensors, calibration.safetensors (sequences of mixed length),
inputs-8x128.safetensors and inputs-1x128.safetensors (no padding).

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "python"))
import st  # noqa: E402

POSITIONS = 512
SEGMENTS = 2


def config(args):
    return {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
        "hidden_size": args.hidden, "num_hidden_layers": args.layers,
        "num_attention_heads": args.heads, "intermediate_size": args.ffn,
        "vocab_size": args.vocab, "max_position_embeddings": POSITIONS,
        "type_vocab_size": SEGMENTS, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "position_embedding_type": "absolute", "attention_probs_dropout_prob": 0.1,
        "hidden_dropout_prob": 0.1, "initializer_range": 0.02,
    }


class Weights:
    """Random parameters by name, drawn in the order of the calls."""

    def __init__(self, seed, dtype):
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.tensors = {}

    def matrix(self, name, *shape, mean=0.0, spread=0.02):
        values = self.rng.standard_normal(shape, dtype=np.float32)
        self.tensors[name] = (mean + spread * values).astype(self.dtype)

    def linear(self, name, out, into):
        self.matrix(name + ".weight", out, into)
        self.matrix(name + ".bias", out)

    def norm(self, name, width):
        self.matrix(name + ".weight", width, mean=1.0, spread=0.1)
        self.matrix(name + ".bias", width, spread=0.05)


def weights(args):
    w = Weights(args.seed, {"F32": np.float32, "F16": np.float16}[args.dtype])
    for table, rows in (("word", args.vocab), ("position", POSITIONS), ("token_type", SEGMENTS)):
        w.matrix(f"embeddings.{table}_embeddings.weight", rows, args.hidden)
    w.norm("embeddings.LayerNorm", args.hidden)
    for i in range(args.layers):
        layer = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            w.linear(f"{layer}.attention.self.{part}", args.hidden, args.hidden)
        w.linear(f"{layer}.attention.output.dense", args.hidden, args.hidden)
        w.norm(f"{layer}.attention.output.LayerNorm", args.hidden)
        w.linear(f"{layer}.intermediate.dense", args.ffn, args.hidden)
        w.linear(f"{layer}.output.dense", args.hidden, args.ffn)
        w.norm(f"{layer}.output.LayerNorm", args.hidden)
    return w.tensors


def inputs(rng, vocab, rows, length, shortest=None):
    """Token ids and mask; each row has `length` tokens, or a random number from `shortest` up, padded."""
    lengths = rng.integers(length if shortest is None else shortest, length + 1, rows)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    ids = rng.integers(1, vocab, (rows, length), dtype=np.int32)
    return {"input_ids": ids * mask, "attention_mask": mask}


def parse_args():
    parser = argparse.ArgumentParser(description="write a BERT checkpoint with random weights")
    parser.add_argument("outdir")
    for option, value in (("layers", 12), ("hidden", 768), ("heads", 12), ("ffn", 3072),
                          ("vocab", 30522), ("samples", 64), ("seed", 1)):
        parser.add_argument("--" + option, type=int, default=value, help=f"default {value}")
    parser.add_argument("--dtype", choices=("F32", "F16"), default="F32")
    args = parser.parse_args()
    if args.hidden % args.heads != 0:
        parser.error(f"--hidden {args.hidden} is not a multiple of --heads {args.heads}")
    return args


def main():
    args = parse_args()
    os.makedirs(args.outdir, exist_ok=True)
    with open(os.path.join(args.outdir, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config(args), file, indent=2)
    rng = np.random.default_rng(args.seed + 1)
    files = {
        "model": weights(args),
        "calibration": inputs(rng, args.vocab, args.samples, 128, shortest=16),
        "inputs-8x128": inputs(rng, args.vocab, 8, 128),
        "inputs-1x128": inputs(rng, args.vocab, 1, 128),
    }
    for name, tensors in files.items():
        path = os.path.join(args.outdir, name + ".safetensors")
        st.write(path, tensors)
        print(f"{path}: {len(tensors)} tensors, {os.path.getsize(path) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
