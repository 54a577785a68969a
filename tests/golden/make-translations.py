#!/usr/bin/env python3
"""make-translations.py - what transformers' beam search finds with small random translation models.

    python make-translations.py > translations.txt

The models and sources are those of translator-variants.json.  A line is a search,

    variant source beams early penalty score ids

ids being the new tokens of the best text; early 0, 1, 2: False, True, "never".  Beams 1, which
generate() takes for greedy search, go through the same code as the others.  Made with transformers
5.23 and torch 2.15.

SPDX-License-Identifier: Apache-2.0
"""
import importlib
import json
import os
import sys
import tempfile
import warnings

import torch
from transformers import GenerationConfig, GenerationMixin
from transformers.generation import GenerationMode

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
translator = importlib.import_module("make-translator")
NEW = 20

GenerationMixin.get_generation_mode = GenerationConfig.get_generation_mode = (
    lambda *_: GenerationMode.BEAM_SEARCH)


@torch.no_grad()
def search(model, keys, source, beams, early, penalty):
    config = GenerationConfig(
        num_beams=beams, early_stopping=[False, True, "never"][early], length_penalty=penalty,
        max_new_tokens=NEW, do_sample=False, decoder_start_token_id=keys["decoder_start_token_id"],
        eos_token_id=keys["eos_token_id"], pad_token_id=keys["pad_token_id"],
        bos_token_id=keys["bos_token_id"], forced_eos_token_id=keys["forced_eos_token_id"],
        bad_words_ids=keys.get("bad_words_ids"), return_dict_in_generate=True, output_scores=True)
    out = model.generate(torch.tensor([source]), generation_config=config)
    ids = out.sequences[0, 1:].tolist()
    if keys["eos_token_id"] in ids:
        ids = ids[: ids.index(keys["eos_token_id"]) + 1]
    return float(out.sequences_scores[0]), ids


def main():
    with open(os.path.join(HERE, "translator-variants.json"), encoding="utf-8") as file:
        variants = {variant["name"]: variant for variant in json.load(file)}
    for name, (dtype, _, copies, keys) in translator.VARIANTS.items():
        tensors, digest = translator.make_weights(name, keys, copies)
        assert digest == variants[name]["sha256"]
        with tempfile.TemporaryDirectory() as folder:
            model = translator.load(folder, keys, tensors, dtype)
        for number, source in enumerate(variants[name]["sources"]):
            for beams in (1, 2, 4, 8, 32):
                for early in range(3):
                    for penalty in (0.6, 1, 2):
                        score, ids = search(model, keys, source, beams, early, penalty)
                        print(name, number, beams, early, penalty, f"{score:.8g}", *ids)
        sys.stdout.flush()


main()
