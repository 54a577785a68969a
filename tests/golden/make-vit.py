#!/usr/bin/env python3
"""make-vit.py - what transformers computes with small random ViTs and DeiTs.

Writes vit-variants.json beside itself: configurations, and outputs for images.  Needs torch,
transformers and safetensors; made with transformers 5.17.

Neither models nor images are kept, for they can be made again anywhere: element i of tensor NAME of
a variant comes from the number k that make-llama.py describes.  Names are those that checkpoints
have.

  norms (names with "layernorm" that end in ".weight")  1 + floor(k / 4) / 128
  class, distillation, positions (names with "token" or "position")  k / 128
  images ("pixel_values")                                k / 64
  everything else                                        k / 512

All of these are exact in BF16, F16 and F32.  tests/lib/models/vit_file.c makes the same tensors; the
SHA-256 that is kept with each variant says whether they are.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from mixed import digest, mixed

HERE = os.path.dirname(os.path.abspath(__file__))

# ---- Variants -----------------------------------------------------------------------------------


def config(model_type, name, **keys):
    """A config.json; a key that is given as ... is left out."""
    values = {
        "architectures": [name], "model_type": model_type, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40,
        "image_size": 12, "patch_size": 4, "num_channels": 3, "qkv_bias": True,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    }
    if name.endswith("Classification"):
        values["id2label"] = {str(i): f"LABEL_{i}" for i in range(5)}
    values.update(keys)
    return {key: value for key, value in values.items() if value is not ...}


# Name: dtype of the checkpoint, images, configuration.
VARIANTS = {
    "classes": ("F32", 3, config("vit", "ViTForImageClassification")),
    "hidden": ("F32", 2, config("vit", "ViTModel", qkv_bias=..., layer_norm_eps=1e-3)),
    "rectangles": ("BF16", 2, config(
        "vit", "ViTForImageClassification", image_size=[10, 15], patch_size=[3, 4],
        num_channels=1, num_attention_heads=4, hidden_act="gelu_new", encoder_stride=4)),
    "no-bias": ("F16", 2, config(
        "vit", "ViTForImageClassification", qkv_bias=False, hidden_act="relu", image_size=17,
        patch_size=8, num_channels=2, num_hidden_layers=3)),
    "deit": ("F32", 3, config("deit", "DeiTForImageClassification", hidden_size=48)),
    "deit-hidden": ("BF16", 2, config("deit", "DeiTModel", image_size=9, patch_size=3,
                                      pooler_output_size=32, pooler_act="tanh")),
}

# ---- Weights ------------------------------------------------------------------------------------


def tensor(variant, name, shape):
    k = mixed(f"{variant}/{name}", int(np.prod(shape)))
    if "layernorm" in name and name.endswith(".weight"):
        value = 1.0 + (k // 4) / 128.0
    elif name == "pixel_values":
        value = k / 64.0
    else:
        value = k / (128.0 if "token" in name or "position" in name else 512.0)
    return torch.from_numpy(value.astype(np.float32).reshape(shape))


def make_weights(variant, keys):
    """{ name: tensor } of a checkpoint by the names that are saved, and its digest."""
    with tempfile.TemporaryDirectory() as folder:
        model = getattr(transformers, keys["architectures"][0])
        model(AutoConfig.for_model(**keys)).save_pretrained(folder)
        saved = load_file(os.path.join(folder, "model.safetensors"))
    tensors = {name: tensor(variant, name, t.shape) for name, t in saved.items()}
    return tensors, digest(tensors)


# ---- Reference numbers --------------------------------------------------------------------------


def load(keys, tensors, dtype):
    """The model as transformers reads it from the files that users have."""
    kept = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype]
    for name, t in tensors.items():
        assert torch.equal(t.to(kept).to(torch.float32), t), name
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(keys, file)
        save_file({name: t.to(kept) for name, t in tensors.items()},
                  os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        model, report = getattr(transformers, keys["architectures"][0]).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def numbers(t):
    return [float(f"{x:.9g}") for x in t.double().flatten()]


@torch.no_grad()
def make_variant(name, dtype, images, keys):
    tensors, digest = make_weights(name, keys)
    size = keys["image_size"]
    height, width = size if isinstance(size, list) else (size, size)
    pixels = tensor(name, "pixel_values", (images, keys["num_channels"], height, width))
    out = load(keys, tensors, dtype)(pixel_values=pixels)
    outputs = {"logits": numbers(out.logits)} if "logits" in out else {
        "last_hidden_state": numbers(out.last_hidden_state), "pooled": numbers(out.pooler_output)}
    spread = {key: float(np.std(value)) for key, value in outputs.items()}
    print(f"{name}: {len(tensors)} tensors, spread {spread}")
    assert all(0.1 < value < 10 for value in spread.values())
    return {"name": name, "dtype": dtype, "images": images, "config": keys,
            "tensors": len(tensors), "sha256": digest, "outputs": outputs}


def main():
    variants = [make_variant(name, *rest) for name, rest in VARIANTS.items()]
    with open(os.path.join(HERE, "vit-variants.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(v) for v in variants) + "\n]\n")


if __name__ == "__main__":
    main()
