#!/usr/bin/env python3
"""make-translator.py - what transformers computes with small random translation models.

Writes beside itself
  translator-variants.json   configurations, source texts, beginnings of translations, and the
                             logits behind each
  sinusoids.json             rows of tables of positions
Needs torch, transformers and safetensors; made with transformers 5.23.

The models are not kept.  Weights are made as make-llama.py says, but for which values they have:

  norms (names that end in "norm.weight")  1 + floor(k / 4) / 128
  the table of words, final_logits_bias    k / 128
  everything else                          k / 512

tests/lib/models/translator_file.c makes the same tensors.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import importlib
import json
import os
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForSeq2SeqLM
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

HERE = os.path.dirname(os.path.abspath(__file__))
llama = importlib.import_module("make-llama")

# ---- Variants -----------------------------------------------------------------------------------

ENCODER, DECODER = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
SHARED, HEAD = "model.shared.weight", "lm_head.weight"
POSITIONS = ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"]


def config(model_type, layers=(2, 2), heads=(4, 4), ffn=(100, 100), **keys):
    """A config.json."""
    marian = model_type == "marian"
    values = {
        "architectures": ["MarianMTModel" if marian else "M2M100ForConditionalGeneration"],
        "model_type": model_type, "d_model": 64, "vocab_size": 97,
        "encoder_layers": layers[0], "decoder_layers": layers[1],
        "encoder_attention_heads": heads[0], "decoder_attention_heads": heads[1],
        "encoder_ffn_dim": ffn[0], "decoder_ffn_dim": ffn[1],
        "max_position_embeddings": 40, "activation_function": "swish" if marian else "relu",
        "scale_embedding": True, "tie_word_embeddings": True, "is_encoder_decoder": True,
        "bos_token_id": 0, "eos_token_id": 0 if marian else 2, "pad_token_id": 96 if marian else 1,
        "decoder_start_token_id": 96 if marian else 2,
        "forced_eos_token_id": 0 if marian else None,
    }
    values.update(keys)
    return values


# Name: dtype of the checkpoint, files it is in, names that hold the table of words again,
# configuration.
VARIANTS = {
    "m2m": ("F32", 1, [], config("m2m_100")),
    "m2m-uneven": ("F16", 2, [], config(
        "m2m_100", (1, 3), (2, 8), (36, 100), activation_function="gelu", scale_embedding=False,
        pad_token_id=5, d_model=48)),
    "m2m-copies": ("BF16", 1, [ENCODER, DECODER, HEAD], config("m2m_100", (3, 1))),
    "m2m-untied": ("F32", 1, [ENCODER, DECODER], config("m2m_100", tie_word_embeddings=False)),
    "marian": ("F32", 1, [], config("marian", bad_words_ids=[[96]])),
    "marian-uneven": ("F16", 3, [], config(
        "marian", (2, 1), (1, 4), (60, 36), activation_function="gelu", scale_embedding=False)),
    "marian-untied": ("BF16", 1, [DECODER, ENCODER], config("marian", tie_word_embeddings=False)),
}

# Tokens of the sources and of the beginnings.
LENGTHS = [(17, 1), (9, 6), (1, 12)]

# ---- Weights ------------------------------------------------------------------------------------


def weight(variant, name, shape):
    k = llama.mixed(f"{variant}/{name}", int(np.prod(shape)))
    if name.endswith("norm.weight"):
        value = 1.0 + (k // 4) / 128.0
    else:
        value = k / (128.0 if name in (SHARED, "final_logits_bias") else 512.0)
    return torch.from_numpy(value.astype(np.float32).reshape(shape))


def make_weights(variant, keys, copies):
    """{ name: tensor } of a checkpoint, and its digest."""
    shapes = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(**keys)).state_dict()
    skipped = [ENCODER, DECODER, *POSITIONS] + [HEAD] * keys["tie_word_embeddings"]
    tensors = {name: weight(variant, name, t.shape) for name, t in shapes.items()
               if name not in skipped}
    tensors.update({name: tensors[SHARED].clone() for name in copies})
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + b"\n" + tensors[name].numpy().tobytes())
    return tensors, digest.hexdigest()


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
    model, report = AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def make_row(name, keys, number, lengths):
    """Tokens that are neither padding nor an end; the translation begins with its start."""
    usable = [i for i in range(keys["vocab_size"])
              if i not in (keys["pad_token_id"], keys["eos_token_id"])]
    source, target = ([usable[k % len(usable)] for k in llama.mixed(f"{name}/{part} {number}", n)]
                      for part, n in zip(("source", "target"), lengths))
    return source, [keys["decoder_start_token_id"]] + target[1:]


@torch.no_grad()
def logits_behind(model, source, target):
    out = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]),
                use_cache=False)
    return [float(f"{x:.9g}") for x in out.logits[0, -1].double()]


def make_variant(name, dtype, shards, copies, keys):
    tensors, digest = make_weights(name, keys, copies)
    rows = [make_row(name, keys, i, lengths) for i, lengths in enumerate(LENGTHS)]
    with tempfile.TemporaryDirectory() as folder:
        model = load(folder, keys, tensors, dtype)
    logits = [logits_behind(model, *row) for row in rows]
    print(f"{name}: {len(tensors)} tensors, logits spread {np.std(logits):.2f}")
    assert 0.5 < np.std(logits) < 30
    return {"name": name, "dtype": dtype, "shards": shards, "copies": copies, "config": keys,
            "tensors": len(tensors), "sha256": digest, "sources": [row[0] for row in rows],
            "targets": [row[1] for row in rows], "logits": logits}


# ---- Tables of positions ------------------------------------------------------------------------

# Kind, columns, rows, padding.
TABLES = [("closed", 4, 64, 1), ("closed", 48, 45, 5), ("closed", 128, 130, 1),
          ("closed", 512, 514, 1), ("closed", 1024, 1026, 1),
          ("open", 4, 64, -1), ("open", 48, 40, -1), ("open", 512, 512, -1)]


def make_table(kind, columns, rows, padding):
    if kind == "closed":
        table = M2M100SinusoidalPositionalEmbedding.get_embedding(rows, columns, padding)
    else:
        table = MarianSinusoidalPositionalEmbedding(rows, columns).create_weight()
    some = [rows // 3, rows - 1] if columns >= 512 else sorted(
        {0, 1, max(padding, 2), rows // 3, rows - 1})
    return {"kind": kind, "columns": columns, "rows": rows, "padding": padding,
            "positions": some, "values": [[float(f"{x:.9g}") for x in table[p].double()]
                                          for p in some]}


def main():
    torch.set_num_threads(1)
    llama.HERE = HERE
    print(f"transformers {transformers.__version__}")
    llama.write("translator-variants.json",
                [make_variant(name, *v) for name, v in VARIANTS.items()])
    llama.write("sinusoids.json", [make_table(*table) for table in TABLES])


if __name__ == "__main__":
    main()
