#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make beams.txt: what transformers' beam search finds in models that are tables.

    pip install torch==2.15.0 transformers==5.23.0 numpy
    python make-beams.py > beams.txt

A model is a function from a position and the token there to logits, by whole numbers and one exact
scaling, so that beam_search-t.c computes the same ones (tests/kernels/beam_search.c).  A line is a search,

    seed vocabulary beams early penalty prompt longest ngram repetition least first ends score ids

ids being the new tokens of the best text, its end included; early 0, 1, 2: False, True, "never";
ends: ids 2 .. 2 + ends - 1 end a text.  Beams 1, which generate() takes for greedy search, go through
the same code as the others.
"""
import sys
import warnings

import numpy as np
import torch
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.generation import GenerationMode
from transformers.modeling_outputs import CausalLMOutput

warnings.filterwarnings("ignore")
BONUS = 1.5
PAD = 0


def logits_of(seed, vocabulary, ends, position, last):
    """As table_logits() in tests/kernels/beam_search.c; `last` is an array."""
    with np.errstate(over="ignore"):
        u = np.uint32
        h = u(seed) * u(0x9E3779B1) + u(position) * u(0x85EBCA77)
        token = np.arange(vocabulary, dtype=np.uint32)
        h = h + last.astype(np.uint32)[:, None] * u(0xC2B2AE3D) + token[None, :] * u(0x27D4EB2F)
        h = (h ^ (h >> u(15))) * u(0x2C1B3C6D)
        h = (h ^ (h >> u(12))) * u(0x297A2D39)
        h = h ^ (h >> u(15))
    x = (h >> u(8)).astype(np.float32) * np.float32(2.0**-21)
    x[:, 2 : 2 + ends] += np.float32(BONUS)
    return x


class TableConfig(PretrainedConfig):
    model_type = "ft-table"


class Table(PreTrainedModel, GenerationMixin):
    config_class = TableConfig
    main_input_name = "input_ids"

    def __init__(self, config):
        super().__init__(config)
        self.nothing = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, **_):
        ids = input_ids.numpy()
        x = logits_of(self.table[0], self.table[1], self.table[2], ids.shape[1] - 1, ids[:, -1])
        return CausalLMOutput(logits=torch.from_numpy(x)[:, None, :])


GenerationConfig.get_generation_mode = lambda *_: GenerationMode.BEAM_SEARCH


def search(model, s):
    model.table = (s["seed"], s["vocabulary"], s["ends"])
    model.config.vocab_size = s["vocabulary"]
    prompt = [(s["seed"] * 7 + i * 11) % (s["vocabulary"] - 5) + 5 for i in range(s["prompt"])]
    config = GenerationConfig(
        num_beams=s["beams"], early_stopping=[False, True, "never"][s["early"]],
        length_penalty=s["penalty"], max_length=s["longest"], do_sample=False, use_cache=False,
        eos_token_id=list(range(2, 2 + s["ends"])), pad_token_id=PAD,
        no_repeat_ngram_size=s["ngram"], repetition_penalty=s["repetition"] or 1.0,
        min_new_tokens=s["least"], forced_bos_token_id=None if s["first"] < 0 else s["first"],
        return_dict_in_generate=True, output_scores=True)
    with torch.no_grad():
        out = model.generate(torch.tensor([prompt]), generation_config=config)
    ids = out.sequences[0, s["prompt"] :].tolist()
    for i, token in enumerate(ids):
        if 2 <= token < 2 + s["ends"]:
            ids = ids[: i + 1]
            break
    return float(out.sequences_scores[0]), ids


def settings():
    seed = 0
    for beams in (1, 2, 4, 8, 32):
        for early in (0, 1, 2):
            for penalty in (0.6, 1.0, 2.0):
                for variant in range(8):
                    seed += 1
                    s = dict(seed=seed, vocabulary=(64, 97, 300)[seed % 3], beams=beams,
                             early=early, penalty=penalty, prompt=1, longest=24, ngram=0,
                             repetition=0.0, least=0, first=-1, ends=1)
                    if variant == 1:
                        s.update(prompt=3, longest=60)
                    elif variant == 2:
                        s.update(ngram=2)
                    elif variant == 3:
                        s.update(repetition=1.3, prompt=2)
                    elif variant == 4:
                        s.update(least=5)
                    elif variant == 5:
                        s.update(first=7)
                    elif variant == 6:
                        s.update(ends=3)
                    elif variant == 7:
                        s.update(longest=5)
                    yield s


def main():
    model = Table(TableConfig(vocab_size=64)).eval()
    for s in settings():
        score, ids = search(model, s)
        head = " ".join(format(s[k], "g") for k in
                        ("seed", "vocabulary", "beams", "early", "penalty", "prompt", "longest",
                         "ngram", "repetition", "least", "first", "ends"))
        print(head, format(score, ".8g"), " ".join(map(str, ids)))


if __name__ == "__main__":
    sys.exit(main())
