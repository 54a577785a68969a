#!/usr/bin/env python3
"""make-heads.py - what transformers computes with small random encoders of every head.

Writes head-variants.json beside itself: configurations, the tensors' names and shapes, and outputs
for rows of token ids.  Needs torch, transformers and safetensors; made with transformers 5.24.

The models are not kept: element i of tensor NAME of a variant comes from the number k that
make-llama.py describes.

  norms (names with "norm" that end in ".weight")  1 + floor(k / 4) / 128
  embedding tables (names with "embeddings")       k / 128
  everything else                                  k / 256

tests/families/heads-t.c makes the same tensors; the SHA-256 that is kept with each variant says
whether they are.

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
OUTPUTS = ("logits", "start_logits", "end_logits")

# ---- Variants -----------------------------------------------------------------------------------


def config(name, labels=0, **keys):
    """A config.json; a key that is given as ... is left out."""
    model_type = name[:name.index("For")].lower()
    distil = model_type == "distilbert"
    values = {
        "architectures": [name], "model_type": model_type, "vocab_size": 53,
        "max_position_embeddings": 30, "pad_token_id": 1 if model_type == "roberta" else 0,
    }
    if distil:
        values.update(dim=24, n_layers=2, n_heads=3, hidden_dim=40, activation="gelu")
    else:
        values.update(hidden_size=40, num_hidden_layers=2, num_attention_heads=5,
                      intermediate_size=36, type_vocab_size=2 if model_type == "bert" else 1,
                      hidden_act="gelu")
    if labels > 0:
        values["id2label"] = {str(i): f"LABEL_{i}" for i in range(labels)}
    values.update(keys)
    return {key: value for key, value in values.items() if value is not ...}


VARIANTS = {}
for family in ("Bert", "Roberta", "DistilBert"):
    VARIANTS[f"{family} tokens"] = config(f"{family}ForTokenClassification", 7)
    VARIANTS[f"{family} span"] = config(f"{family}ForQuestionAnswering")
    VARIANTS[f"{family} lm"] = config(f"{family}ForMaskedLM")
    VARIANTS[f"{family} untied lm"] = config(f"{family}ForMaskedLM", tie_word_embeddings=False)
    VARIANTS[f"{family} classes"] = config(f"{family}ForSequenceClassification", 5)
    VARIANTS[f"{family} many"] = config(f"{family}ForSequenceClassification", 4,
                                        problem_type="multi_label_classification")
    VARIANTS[f"{family} one"] = config(f"{family}ForSequenceClassification", 1)
VARIANTS["Bert relu lm"] = config("BertForMaskedLM", hidden_act="relu", layer_norm_eps=1e-3)
VARIANTS["Bert one token"] = config("BertForTokenClassification", 1, num_attention_heads=1)
VARIANTS["Bert pretraining"] = config("BertForPreTraining")

# ---- Weights ------------------------------------------------------------------------------------


def tensor(variant, name, shape):
    k = mixed(f"{variant}/{name}", int(np.prod(shape)))
    if "norm" in name.lower() and name.endswith(".weight"):
        value = 1.0 + (k // 4) / 128.0
    else:
        value = k / (128.0 if "embeddings" in name else 256.0)
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


def load(keys, tensors):
    """The model as transformers reads it from the files that users have."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(keys, file)
        save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        model, report = getattr(transformers, keys["architectures"][0]).from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def numbers(t):
    return [float(f"{x:.7g}") for x in t.double().flatten()]


@torch.no_grad()
def make_variant(name, keys):
    tensors, sha = make_weights(name, keys)
    padding = keys["pad_token_id"]
    lengths = (9, 4, 1)
    ids = torch.from_numpy((mixed(f"{name}/ids", 27) % 48 + 3).reshape(3, 9))
    mask = torch.tensor([[int(i < n) for i in range(9)] for n in lengths])
    ids = torch.where(mask == 1, ids, padding)
    out = load(keys, tensors)(input_ids=ids, attention_mask=mask)
    found = {"prediction_logits": "logits"}
    outputs = {found.get(key, key): numbers(out[key]) for key in out.keys()
               if found.get(key, key) in OUTPUTS}
    spread = {key: float(np.std(value)) for key, value in outputs.items()}
    print(f"{name}: {len(tensors)} tensors, spread {spread}")
    assert outputs and all(0.05 < value < 20 for value in spread.values())
    return {"name": name, "dtype": "F32", "config": keys, "sha256": sha, "ids": ids.tolist(),
            "lengths": lengths, "shapes": {key: list(t.shape) for key, t in tensors.items()},
            "outputs": outputs}


def main():
    variants = [make_variant(name, keys) for name, keys in VARIANTS.items()]
    with open(os.path.join(HERE, "head-variants.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in variants) +
                   "\n]\n")


if __name__ == "__main__":
    main()
