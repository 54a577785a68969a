#!/usr/bin/env python3
"""make-embeddings.py - what sentence-transformers computes with small random models.

Writes embedding-variants.json beside itself: the files of each model, the names and shapes of its
tensors, texts, and their embeddings with every prompt.  Needs torch, transformers, safetensors and
sentence-transformers; made with transformers 5.24 and sentence-transformers 6.2.

The models are not kept: element i of tensor NAME of a variant comes from the number k that
make-llama.py describes.  Dense layers have the name of their folder before that of the tensor.

  norms (names with "norm" that end in ".weight")  1 + floor(k / 4) / 128
  embedding tables (names with "embed")            k / 128
  everything else                                  k / 256

tests/families/embeddings-t.c makes the same tensors; the SHA-256 that is kept with each variant says
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
from sentence_transformers import SentenceTransformer
from transformers import AutoConfig, AutoModel, AutoTokenizer

from mixed import digest, mixed

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["a b c d e f g h i", "b", "l k j A", "c d c d c c d d c c c c c", "[MASK] E"]
# transformers takes the Qwen2Tokenizer for Qwen2, which has no unknown token.
DECODER_TEXTS = TEXTS[:2] + ["l k j a"] + TEXTS[3:4] + ["[MASK] e"]

# ---- Files --------------------------------------------------------------------------------------


def tokenizer(ends):
    """tokenizer.json: words of one letter, and special tokens around them, or only an end."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = {token: i for i, token in enumerate(special + list("abcdefghijkl"))}
    single = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    pair = single + [{"Sequence": {"id": "B", "type_id": 1}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    if ends:
        single, pair = single[1:], pair[1:]
    names = ["[SEP]"] if ends else ["[CLS]", "[SEP]"]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": token, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for i, token in enumerate(special)],
        "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair,
                           "special_tokens": {name: {"id": name, "ids": [vocab[name]],
                                                     "tokens": [name]} for name in names}},
        "decoder": None, "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }


def encoder(model_type, **keys):
    values = {"architectures": [{"bert": "BertModel", "roberta": "RobertaModel",
                                 "distilbert": "DistilBertModel"}[model_type]],
              "model_type": model_type, "vocab_size": 20, "max_position_embeddings": 30,
              "pad_token_id": 0}
    if model_type == "distilbert":
        values.update(dim=24, n_layers=2, n_heads=3, hidden_dim=40, activation="gelu")
    else:
        values.update(hidden_size=40, num_hidden_layers=2, num_attention_heads=5,
                      intermediate_size=36, type_vocab_size=2 if model_type == "bert" else 1,
                      hidden_act="gelu")
    return {**values, **keys}


def decoder(name, **keys):
    model_type = {"Ll": "llama", "Qwen2": "qwen2", "Qwen3": "qwen3"}[
        name[:2] if name.startswith("Ll") else name[:5]]
    return {"architectures": [name], "model_type": model_type, "hidden_size": 40,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 12, "intermediate_size": 36, "vocab_size": 20,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, **keys}


def dense(size_in, size_out, activation, bias=True):
    return {"in_features": size_in, "out_features": size_out, "bias": bias,
            "activation_function": f"torch.nn.modules.{activation}"}


def files(config, pooling, *modules, **more):
    """The JSON files of a folder; modules are the config of a Dense, or None for a Normalize."""
    is_decoder = "rms_norm_eps" in config
    out = {"config.json": config, "tokenizer.json": tokenizer(is_decoder),
           "tokenizer_config.json": {
               "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]",
               "unk_token": "[UNK]", "sep_token": "[SEP]", "mask_token": "[MASK]",
               "cls_token": "[CLS]", "padding_side": "left" if is_decoder else "right"}}
    if pooling is None:
        return out
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
              {"idx": 1, "name": "1", "path": "1_Pooling",
               "type": "sentence_transformers.models.Pooling"}]
    out["1_Pooling/config.json"] = pooling
    for i, module in enumerate(modules, 2):
        kind = "Normalize" if module is None else "Dense"
        listed.append({"idx": i, "name": str(i), "path": f"{i}_{kind}",
                       "type": f"sentence_transformers.models.{kind}"})
        if module is not None:
            out[f"{i}_Dense/config.json"] = module
    out["modules.json"] = listed
    for name, value in more.items():
        out[name + ".json"] = value
    return out


def mode(name, size=40):
    return {"word_embedding_dimension": size, "pooling_mode": name}


TANH, NONE, RELU = "activation.Tanh", "linear.Identity", "activation.ReLU"
GELU, SILU = "activation.GELU", "activation.SiLU"
PROMPTS = {"prompts": {"query": "a b ", "document": "c: "}, "default_prompt_name": "query"}

VARIANTS = {
    "dense tanh": files(encoder("bert"), {"word_embedding_dimension": 40,
                                          "pooling_mode_mean_tokens": True,
                                          "pooling_mode_cls_token": False},
                        dense(40, 12, TANH), None),
    "two dense": files(encoder("bert"), mode("cls"), None, dense(40, 56, NONE, bias=False),
                       dense(56, 20, GELU)),
    "four dense": files(encoder("roberta", pad_token_id=0), mode("max"), dense(40, 24, RELU), None,
                        dense(24, 24, SILU), None, dense(24, 7, NONE), dense(7, 3, TANH), None),
    "lasttoken": files(encoder("bert"), mode("lasttoken")),
    "mean_sqrt_len": files(encoder("distilbert"), mode("mean_sqrt_len_tokens", 24)),
    "weightedmean": files(encoder("bert"), {"embedding_dimension": 40,
                                            "pooling_mode_weightedmean_tokens": True}, None),
    "max": files(encoder("distilbert"), mode("max", 24), None),
    "prompts": files(encoder("bert"), mode("mean"), None, config_sentence_transformers=PROMPTS,
                     sentence_bert_config={"max_seq_length": 8, "do_lower_case": True}),
    "qwen3": files(decoder("Qwen3Model"), mode("lasttoken"), None,
                   config_sentence_transformers={"prompts": {"query": "f g ", "document": ""},
                                                 "default_prompt_name": None}),
    "qwen2": files(decoder("Qwen2Model", head_dim=10, use_sliding_window=False),
                   mode("weightedmean"), dense(40, 16, NONE, bias=False), None),
    "llama": files(decoder("LlamaForCausalLM", tie_word_embeddings=True), mode("mean"),
                   dense(40, 16, TANH)),
    "plain llama": files(decoder("LlamaForCausalLM"), None),
    "plain tied llama": files(decoder("LlamaForCausalLM", tie_word_embeddings=True), None),
}

# ---- Weights ------------------------------------------------------------------------------------


def tensor(variant, name, shape):
    k = mixed(f"{variant}/{name}", int(np.prod(shape)))
    if "norm" in name.lower() and name.endswith(".weight"):
        value = 1.0 + (k // 4) / 128.0
    else:
        value = k / (128.0 if "embed" in name else 256.0)
    return torch.from_numpy(value.astype(np.float32).reshape(shape))


def shapes_of(config):
    """{ name: shape } of the tensors that are saved."""
    with tempfile.TemporaryDirectory() as folder:
        keys = {key: value for key, value in config.items() if key != "architectures"}
        getattr(transformers, config["architectures"][0])(
            AutoConfig.for_model(**keys)).save_pretrained(folder)
        return {name: list(t.shape) for name, t in
                load_file(os.path.join(folder, "model.safetensors")).items()}


def dense_shapes(config):
    shapes = {"linear.weight": [config["out_features"], config["in_features"]]}
    if config["bias"]:
        shapes["linear.bias"] = [config["out_features"]]
    return shapes


# ---- Reference numbers --------------------------------------------------------------------------


def write(folder, content, weights):
    for path, value in content.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            json.dump(value, file)
    for where, tensors in weights.items():
        save_file(tensors, os.path.join(folder, where, "model.safetensors"), metadata={"format": "pt"})


def rows(array):
    return [[float(f"{x:.7g}") for x in row] for row in np.asarray(array, dtype=np.float64)]


def embed_with_modules(folder, content, texts):
    model = SentenceTransformer(folder, device="cpu")
    prompts = content.get("config_sentence_transformers.json", {}).get("prompts", {})
    outputs = {"": rows(model.encode(texts))}
    for name in prompts:
        outputs[name] = rows(model.encode(texts, prompt_name=name))
    return outputs


@torch.no_grad()
def embed_last_token(folder, texts):
    """Without modules.json: the last token's row, normalized."""
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokens = AutoTokenizer.from_pretrained(folder)
    out = []
    for text in texts:
        last = model(**tokens(text, return_tensors="pt")).last_hidden_state[0, -1]
        out.append(torch.nn.functional.normalize(last, dim=0).numpy())
    return {"": rows(out)}


def make_variant(name, content):
    shapes = {"": shapes_of(content["config.json"])}
    for path, value in content.items():
        if path.endswith("_Dense/config.json"):
            shapes[os.path.dirname(path)] = dense_shapes(value)
    weights = {where: {key: tensor(name, f"{where}/{key}" if where else key, shape)
                       for key, shape in listed.items()} for where, listed in shapes.items()}
    texts = DECODER_TEXTS if "rms_norm_eps" in content["config.json"] else TEXTS
    with tempfile.TemporaryDirectory() as folder:
        write(folder, content, weights)
        outputs = (embed_with_modules(folder, content, texts) if "modules.json" in content
                   else embed_last_token(folder, texts))
    print(name, {key: (np.shape(value), float(np.std(value))) for key, value in outputs.items()})
    assert all(0.02 < np.std(value) < 20 for value in outputs.values())
    return {"name": name, "files": content, "sha256": digest(weights[""]), "shapes": shapes,
            "texts": texts, "outputs": outputs}


def main():
    variants = [make_variant(name, content) for name, content in VARIANTS.items()]
    with open(os.path.join(HERE, "embedding-variants.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in variants) +
                   "\n]\n")


if __name__ == "__main__":
    main()
