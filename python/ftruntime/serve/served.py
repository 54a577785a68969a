"""A model with its engine, and what it can be asked for.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import asyncio
import os

from .._library import FtError
from .admission import Places
from .errors import ApiError
from .fields import shown

# What a model does not do, in the words of a message.
MISSING = {
    "completions": "does not continue texts",
    "chat": "has no chat template",
    "embeddings": "has no embeddings",
    "rerank": "does not classify pairs of texts",
}


class Served:
    """A model under a name."""

    def __init__(self, name, model, settings):
        capacity = settings.max_sequences + settings.queue
        self.name = name
        self.model = model
        self.created = int(os.stat(model.path).st_mtime)
        self.tasks = _tasks(model)
        if not self.tasks:
            raise ValueError(f"{model.path}: found a model of family {model.family} that answers "
                             "no request of this server, expected a decoder, an embedding model or "
                             "a cross-encoder")
        # Requests that have been cancelled leave the engine a step after they leave their place.
        self.engine = model.engine(max_sequences=settings.max_sequences, queue=2 * capacity,
                                   context=settings.context, cache_tokens=settings.cache_tokens,
                                   threads=settings.threads)
        self.context = _context(model, settings)
        self.places = Places(capacity)

    async def forward(self, seconds, function, *arguments):
        """The result of a coroutine function that waits for forward passes; it takes a place."""
        with self.places.take():
            try:
                return await asyncio.wait_for(function(*arguments), seconds)
            except asyncio.TimeoutError:
                raise ApiError(408, f"the request did not end within {seconds:g} s",
                               code="timeout") from None

    def require(self, task):
        if task not in self.tasks:
            raise ApiError(400, f"model {self.name} {MISSING[task]}", "model",
                           "unsupported_model")


def _tasks(model):
    """The endpoints below /v1 that a model serves."""
    found = []
    if model._generates and "encoder_layers" not in model.config:
        found.append("completions")
        if _has_template(model):
            found.insert(0, "chat")
    if model._info.embedding:
        found.append("embeddings")
    if model.problem_type is not None and model.config.get("head") not in ("tokens", "span", "lm"):
        found.append("rerank")
    return found if found and _has_tokenizer(model) else []


def _has_template(model):
    try:
        return model._chat_template is not None
    except FtError:
        return False


def _has_tokenizer(model):
    try:
        return model.tokenizer is not None
    except FtError:
        return False


def _context(model, settings):
    """Tokens of the longest sequence; with a KV cache those of the engine."""
    if "kv_heads" not in model.config:
        return model.max_positions
    return min(settings.context or 4096, model.max_positions)


class Models:
    """All models of an application, by name."""

    def __init__(self, models, settings):
        self._served = {}
        try:
            for name, model in models.items():
                self._served[name] = Served(name, model, settings)
        except BaseException:
            self.close()
            raise

    def __iter__(self):
        return iter(self._served.values())

    def get(self, name):
        """The model of a name; without a name the only one."""
        if name is None and len(self._served) == 1:
            return next(iter(self._served.values()))
        if name is None:
            raise ApiError(400, "model: found nothing, expected the name of a model", "model",
                           "missing_required_parameter")
        if name not in self._served:
            raise ApiError(404, f"model: found {shown(name)}, expected "
                           + " or ".join(map(shown, self._served)), "model", "model_not_found")
        return self._served[name]

    def close(self):
        for served in self:
            served.engine.close()
