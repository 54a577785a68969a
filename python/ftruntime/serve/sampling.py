"""How a request wants its tokens chosen: the parameters that chats and completions share.

Names and defaults are those of OpenAI, and of vLLM where OpenAI has none.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Dict

from .fields import invalid, shown

MOST_CHOICES = 128
MOST_STOPS = 16
SMALLEST_TOP_P = 1e-6  # for a top_p of 0, which means "all" to the library

IGNORED = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
           "prompt_cache_retention", "prompt_cache_options", "prediction")


@dataclass
class Sampling:
    """Choices of each prompt, and arguments of Engine.submit()."""

    n: int
    stream: bool
    include_usage: bool
    seed: int
    options: Dict[str, Any]

    def of_choice(self, i):
        """The arguments of choice i, which has a seed of its own."""
        return dict(self.options, seed=(self.seed + i) % (1 << 64))


def read_sampling(fields, settings, max_tokens):
    """Take the parameters out of a request; max_tokens new tokens, or 0: up to the context."""
    stream = fields.boolean("stream")
    options = {
        "max_new_tokens": max_tokens or settings.max_tokens,
        "temperature": fields.number("temperature", 0, 2, 1.0),
        "top_p": _top_p(fields),
        "presence_penalty": fields.number("presence_penalty", -2, 2, 0.0),
        "frequency_penalty": fields.number("frequency_penalty", -2, 2, 0.0),
        "stop": fields.texts("stop", MOST_STOPS),
        "top_k": max(fields.integer("top_k", -1, 1 << 30, 0), 0),
        "min_p": fields.number("min_p", 0, 1, 0.0),
        "repetition_penalty": fields.number("repetition_penalty", 0.01, 10, 1.0),
        "min_new_tokens": fields.integer("min_tokens", 0, 1 << 30, 0),
        "stop_ids": [] if fields.boolean("ignore_eos") else None,
        "timeout": settings.request_timeout,
    }
    fields.ignore(*IGNORED)
    fields.neutral("logit_bias", {})
    return Sampling(
        n=fields.integer("n", 1, MOST_CHOICES, 1),
        stream=stream,
        include_usage=_include_usage(fields, stream),
        seed=_seed(fields),
        options=options)


def read_max_tokens(fields, settings, *names):
    """The first of these parameters that is there; 0: none is."""
    most = settings.max_tokens or (1 << 30)
    found = [fields.integer(name, 1, most, 0) for name in names]
    return next((value for value in found if value), 0)


def _top_p(fields):
    value = fields.number("top_p", 0, 1, 1.0)
    return 0.0 if value == 1 else max(value, SMALLEST_TOP_P)


def _seed(fields):
    """Any 64 bits; without a seed each request has its own."""
    return fields.integer("seed", -(1 << 63), (1 << 64) - 1, random.getrandbits(64)) % (1 << 64)


def _include_usage(fields, stream):
    options = fields.take("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict) or not stream:
        raise invalid("stream_options", shown(options) if stream else "a request without stream",
                      "an object, with stream")
    options = fields.of(options, "stream_options")
    options.ignore("include_obfuscation")
    found = options.boolean("include_usage")
    options.finish()
    return found
