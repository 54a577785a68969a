#!/usr/bin/env python3
"""make-llama.py - what transformers computes with small random Llamas and their kin.

Writes beside itself
  llama-variants.json   configurations, rows of tokens, and the logits behind each row
  rope.json             frequencies of rotary positions for every kind of scaling
Needs torch, transformers and safetensors; made with transformers 5.23, Qwen3 with 5.24.

The models are not kept, for their weights can be made again anywhere.  Element i of tensor NAME of
a variant comes from 64-bit integers, all products and sums modulo 2^64:

  h = FNV-1a of "VARIANT/NAME"             (offset 0xcbf29ce484222325, prime 0x100000001b3)
  z = h + (i + 1) * 0x9e3779b97f4a7c15     and from here on as SplitMix64 does:
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb
  k = ((z ^ (z >> 31)) >> 56) - 128        a number from -128 to 127

  norms (names that end in "norm.weight")  1 + floor(k / 4) / 128
  the table of words                       k / 128
  everything else                          k / 512

All of these are exact in BF16, F16 and F32.  tests/lib/models/llama_file.c makes the same tensors; the
SHA-256 that is kept with each variant says whether they are.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from mixed import digest, mixed

HERE = os.path.dirname(os.path.abspath(__file__))

# ---- Variants -----------------------------------------------------------------------------------


def config(model_type, **keys):
    """A config.json; a key that is given as ... is left out."""
    names = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
    values = {
        "architectures": [names[model_type] + "ForCausalLM"], "model_type": model_type,
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 100, "vocab_size": 97,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": False, "rope_parameters": {"rope_type": "default",
                                                          "rope_theta": 10000.0},
    }
    values.update(keys)
    return {key: value for key, value in values.items() if value is not ...}


def scaled(rope_type, **members):
    return {"rope_type": rope_type, "rope_theta": 10000.0, **members}


# Name: dtype of the checkpoint, files it is in, lengths of the rows, configuration.
VARIANTS = {
    "grouped": ("F32", 1, (17, 9, 1), config("llama")),
    "one-key-head": ("BF16", 1, (17, 4), config("llama", num_key_value_heads=1)),
    "all-key-heads": ("F16", 1, (17, 4), config(
        "llama", num_key_value_heads=None, hidden_act="gelu_pytorch_tanh")),
    "head-size": ("F32", 1, (17, 4), config(
        "llama", hidden_size=96, num_hidden_layers=3, head_dim=16, num_attention_heads=4)),
    "tied": ("BF16", 1, (17, 4), config("llama", tie_word_embeddings=True)),
    "biases": ("F32", 2, (17, 4), config("llama", attention_bias=True, mlp_bias=True)),
    "linear": ("F32", 1, (40, 12), config(
        "llama", rope_parameters=scaled("linear", factor=2.5))),
    "llama3": ("F32", 1, (70, 33), config("llama", rope_parameters=scaled(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64))),
    "dynamic": ("F32", 1, (41, 25, 24, 10), config(
        "llama", max_position_embeddings=24, rope_parameters=scaled("dynamic", factor=3.0))),
    "old-keys": ("F16", 1, (40, 12), config(
        "llama", rope_parameters=..., rope_theta=500.0, pretraining_tp=1, torch_dtype="float16",
        rope_scaling={"type": "linear", "factor": 4.0})),
    "mistral-window": ("BF16", 3, (17, 6, 5, 2), config(
        "mistral", num_hidden_layers=3, sliding_window=5)),
    "qwen2": ("F32", 1, (17, 4), config("qwen2", rope_parameters={
        "rope_type": "default", "rope_theta": 1000000.0})),
    "qwen2-window": ("F32", 1, (17, 5, 4), config(
        "qwen2", num_hidden_layers=3, use_sliding_window=True, sliding_window=4,
        max_window_layers=1)),
    "qwen3": ("F32", 1, (17, 9, 1), config(
        "qwen3", hidden_size=40, num_attention_heads=3, num_key_value_heads=1, head_dim=24,
        intermediate_size=56, attention_bias=False, use_sliding_window=False, sliding_window=None,
        max_window_layers=2, layer_types=["full_attention", "full_attention"])),
    "qwen3-old-keys": ("BF16", 1, (17, 4), config(
        "qwen3", rope_parameters=..., rope_theta=1000000.0, rope_scaling=None,
        attention_bias=False, head_dim=32, tie_word_embeddings=True, torch_dtype="bfloat16")),
    "qwen3-window": ("F32", 2, (17, 5, 4), config(
        "qwen3", num_hidden_layers=3, hidden_size=48, head_dim=10, num_key_value_heads=4,
        attention_bias=True, use_sliding_window=True, sliding_window=4, max_window_layers=1)),
}

# ---- Weights ------------------------------------------------------------------------------------


def weight(variant, name, shape):
    k = mixed(f"{variant}/{name}", int(np.prod(shape)))
    if name.endswith("norm.weight"):
        value = 1.0 + (k // 4) / 128.0
    else:
        value = k / (128.0 if "embed_tokens" in name else 512.0)
    return torch.from_numpy(value.astype(np.float32).reshape(shape))


def make_weights(variant, keys):
    """{ name: tensor } of a checkpoint, which holds no tied head, and its digest."""
    shapes = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**keys)).state_dict()
    if keys["tie_word_embeddings"]:
        del shapes["lm_head.weight"]
    tensors = {name: weight(variant, name, t.shape) for name, t in shapes.items()}
    return tensors, digest(tensors)


# ---- Reference numbers --------------------------------------------------------------------------


def load(folder, keys, tensors, dtype):
    """The model as transformers reads it from the files that users have."""
    kept = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype]
    for name, tensor in tensors.items():
        assert torch.equal(tensor.to(kept).to(torch.float32), tensor), name
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(keys, file)
    save_file({name: t.to(kept) for name, t in tensors.items()},
              os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


@torch.no_grad()
def logits_behind(keys, tensors, dtype, row):
    """Of a row that is alone in its run, without a cache.

    Each row has a model of its own: under dynamic scaling a model remembers the longest row.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = load(folder, keys, tensors, dtype)
    out = model(input_ids=torch.tensor([row]), use_cache=False)
    return [float(f"{x:.9g}") for x in out.logits[0, -1].double()]


# What makes another model of a variant if it is not heeded.
PLAIN = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "rope_scaling": None,
         "sliding_window": None}


def difference_if_ignored(keys, tensors, dtype, row, logits):
    plain = {**keys, **{key: PLAIN[key] for key in PLAIN if key in keys}}
    return np.abs(np.subtract(logits_behind(plain, tensors, dtype, row), logits)).max()


def make_variant(name, dtype, shards, lengths, keys):
    tensors, digest = make_weights(name, keys)
    rows = [(mixed(f"{name}/row {i}", n) % keys["vocab_size"]).tolist()
            for i, n in enumerate(lengths)]
    logits = [logits_behind(keys, tensors, dtype, row) for row in rows]
    spread = np.std(logits)
    ignored = difference_if_ignored(keys, tensors, dtype, rows[0], logits[0])
    print(f"{name}: {len(tensors)} tensors, logits spread {spread:.2f}, without scaling and window "
          f"other by {ignored:.3f}")
    assert 0.5 < spread < 10
    return {"name": name, "dtype": dtype, "shards": shards, "config": keys,
            "tensors": len(tensors), "sha256": digest, "rows": rows, "logits": logits}


# ---- Frequencies --------------------------------------------------------------------------------

# Head size, theta, positions of the model, length of the sequence, scaling.
ROPES = [
    (128, 10000.0, 4096, 4096, {"rope_type": "default"}),
    (96, 1000000.0, 4096, 4096, {"rope_type": "default"}),
    (2, 10000.0, 4096, 4096, {"rope_type": "default"}),
    (64, 10000.0, 4096, 4096, {"rope_type": "linear", "factor": 2.5}),
    (128, 500000.0, 131072, 131072, {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}),
    (64, 500000.0, 131072, 131072, {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.5, "high_freq_factor": 3.0,
        "original_max_position_embeddings": 8192}),
    (128, 10000.0, 4096, 4096, {"rope_type": "dynamic", "factor": 2.0}),
    (128, 10000.0, 4096, 5000, {"rope_type": "dynamic", "factor": 2.0}),
    (80, 10000.0, 2048, 32768, {"rope_type": "dynamic", "factor": 4.0}),
]


def frequencies(head_size, theta, positions, length, scaling):
    keys = AutoConfig.for_model(
        "llama", hidden_size=4 * head_size, num_attention_heads=4, head_dim=head_size,
        max_position_embeddings=positions, rope_parameters={"rope_theta": theta, **scaling})
    if scaling["rope_type"] == "default":
        return LlamaRotaryEmbedding.compute_default_rope_parameters(keys)[0]
    return ROPE_INIT_FUNCTIONS[scaling["rope_type"]](keys, seq_len=length)[0]


def make_rope(head_size, theta, positions, length, scaling):
    return {"head_size": head_size, "theta": theta, "positions": positions, "length": length,
            "scaling": scaling,
            "frequencies": [float(f"{x:.9g}") for x in
                            frequencies(head_size, theta, positions, length, scaling).double()]}


# ---- All of it ----------------------------------------------------------------------------------


def write(name, value):
    """One line for each element: what changes is seen."""
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(element) for element in value) + "\n]\n")


def main():
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}")
    write("llama-variants.json", [make_variant(name, *v) for name, v in VARIANTS.items()])
    write("rope.json", [make_rope(*rope) for rope in ROPES])


if __name__ == "__main__":
    main()
