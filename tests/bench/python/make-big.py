#!/usr/bin/env python3
"""make-big.py OUTDIR - a checkpoint larger than the memory that a converter may use.

A BERT of four gigabytes by default, or the shape of Llama 2 7B, as one file or as shards with an
index: tables and linears of 32 MiB to 1 GiB each, so that a converter that loads a whole tensor or
keeps mapped pages is detected.  Writing takes seconds and a few megabytes of memory: the values are
one block of random numbers, repeated from different starting points, or with --sparse zeros that
take no disk space.

Prints how to measure the peak memory of ft-convert on it.  That figure includes resident pages of
the mapped input.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import math
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
import st  # noqa: E402

HIDDEN, HEADS, FFN, VOCAB, POSITIONS = 4096, 32, 16384, 65536, 512
BLOCK = 1 << 22             # bytes of random numbers

# ---- BERT ---------------------------------------------------------------------------------------


def bert_shapes(layers):
    """{ name: shape } of a BertModel without pooler."""
    shapes = {"embeddings.word_embeddings.weight": (VOCAB, HIDDEN),
              "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
              "embeddings.token_type_embeddings.weight": (2, HIDDEN)}

    def pair(name, *shape):
        shapes[name + ".weight"], shapes[name + ".bias"] = shape, shape[:1]

    pair("embeddings.LayerNorm", HIDDEN)
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            pair(f"{layer}.attention.{part}", HIDDEN, HIDDEN)
        pair(f"{layer}.attention.output.LayerNorm", HIDDEN)
        pair(f"{layer}.intermediate.dense", FFN, HIDDEN)
        pair(f"{layer}.output.dense", HIDDEN, FFN)
        pair(f"{layer}.output.LayerNorm", HIDDEN)
    return shapes


def layers_for(size, dtype):
    """The fewest layers whose checkpoint has at least `size` bytes of data."""
    base = total_bytes(bert_shapes(0), dtype)
    layer = total_bytes(bert_shapes(1), dtype) - base
    return max(1, math.ceil((size - base) / layer))


def bert_config(layers):
    return {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
        "hidden_size": HIDDEN, "num_hidden_layers": layers, "num_attention_heads": HEADS,
        "intermediate_size": FFN, "vocab_size": VOCAB, "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


# ---- Llama 2 7B ---------------------------------------------------------------------------------

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
}


def llama_shapes():
    hidden, ffn, vocab = (LLAMA[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    shapes = {"model.embed_tokens.weight": (vocab, hidden)}
    for i in range(LLAMA["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        shapes[f"{layer}.input_layernorm.weight"] = (hidden,)
        for part in "qkvo":
            shapes[f"{layer}.self_attn.{part}_proj.weight"] = (hidden, hidden)
        shapes[f"{layer}.post_attention_layernorm.weight"] = (hidden,)
        shapes[f"{layer}.mlp.gate_proj.weight"] = (ffn, hidden)
        shapes[f"{layer}.mlp.up_proj.weight"] = (ffn, hidden)
        shapes[f"{layer}.mlp.down_proj.weight"] = (hidden, ffn)
    shapes["model.norm.weight"] = (hidden,)
    shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


# ---- Files --------------------------------------------------------------------------------------


def total_bytes(shapes, dtype):
    return sum(math.prod(shape) for shape in shapes.values()) * st.SIZES[dtype]


def random_block(dtype):
    """BLOCK bytes of values with spread 0.02 in `dtype`."""
    values = np.random.default_rng(1).standard_normal(BLOCK // st.SIZES[dtype], dtype=np.float32)
    values *= np.float32(0.02)
    if dtype == "BF16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return values.astype(st.DTYPES[dtype]).tobytes()


def chunks(block, size, turn):
    """`size` bytes of repetitions of `block`, each from a different starting value."""
    while size > 0:
        start = turn * 520 % (BLOCK // 2)       # a multiple of every item size
        piece = memoryview(block)[start:start + size]
        yield piece
        size -= len(piece)
        turn += 1


def shards_of(shapes, count):
    """Split names into `count` groups of whole tensors, in order, by bytes."""
    total, done = total_bytes(shapes, "F32"), 0
    groups = [[] for _ in range(count)]
    for name, shape in shapes.items():
        groups[min(done * count // total, count - 1)].append(name)
        done += math.prod(shape) * st.SIZES["F32"]
    return [group for group in groups if group]


def write_weights(args, shapes):
    block = random_block(args.dtype)
    groups = shards_of(shapes, args.shards)
    index = {}
    for i, names in enumerate(groups):
        file = "model.safetensors"
        if len(groups) > 1:
            file = f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        index.update({name: file for name in names})
        path = os.path.join(args.outdir, file)
        if args.sparse:
            st.write_zeros(path, [(name, args.dtype, shapes[name]) for name in names])
        else:
            st.write_stream(path, [
                (name, args.dtype, shapes[name],
                 chunks(block, math.prod(shapes[name]) * st.SIZES[args.dtype], turn))
                for turn, name in enumerate(names)])
        print(f"{path}: {len(names)} tensors, {os.path.getsize(path) / 2**30:.2f} GiB", flush=True)
    if len(groups) > 1:
        write_json(args, "model.safetensors.index.json", {
            "metadata": {"total_size": total_bytes(shapes, args.dtype)}, "weight_map": index})


def write_json(args, name, value):
    with open(os.path.join(args.outdir, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def main():
    parser = argparse.ArgumentParser(description="write a checkpoint of several gigabytes")
    parser.add_argument("outdir")
    parser.add_argument("--shape", choices=("bert", "llama-2-7b"), default="bert")
    parser.add_argument("--gib", type=float, default=4,
                        help="of --shape bert: at least this much data, default 4")
    parser.add_argument("--sparse", action="store_true", help="zeros that take no room on disk")
    parser.add_argument("--dtype", choices=("F32", "F16", "BF16"), default="F32")
    parser.add_argument("--shards", type=int, default=1, help="files to write, default 1")
    args = parser.parse_args()
    if args.shards < 1 or args.gib <= 0:
        parser.error("--shards and --gib must be positive")
    os.makedirs(args.outdir, exist_ok=True)
    if args.shape == "bert":
        layers = layers_for(int(args.gib * 2**30), args.dtype)
        write_json(args, "config.json", bert_config(layers))
        write_weights(args, bert_shapes(layers))
    else:
        write_json(args, "config.json", LLAMA)
        write_weights(args, llama_shapes())
    print("\npeak resident memory of the conversion:\n"
          f"  /usr/bin/time -v ft-convert -i {args.outdir} -o {args.outdir}/big.ft -f 2>&1 |\n"
          "    grep -E 'Maximum resident|Elapsed'")


if __name__ == "__main__":
    main()
