"""POST /v1/completions: continue texts, or token ids.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from ..choices import FINISH_REASONS, Choices, written, written_now
from ..errors import ApiError
from ..logprobs import Pieces, completion_entry
from ..response import respond
from ..sampling import read_max_tokens, read_sampling
from ..stamp import new_id, now
from ..texts import read_texts

MAX_TOKENS = 16  # the default of OpenAI


async def create(service, fields):
    settings = service.settings
    served = service.models.get(fields.text("model"))
    prompts = read_texts(fields, "prompt", settings)
    max_tokens = read_max_tokens(fields, settings, "max_tokens") \
        or min(MAX_TOKENS, settings.max_tokens or MAX_TOKENS)
    sampling = read_sampling(fields, settings, max_tokens)
    logprobs = _read_logprobs(fields)
    fields.neutral("echo", False)
    fields.neutral("suffix", "")
    fields.neutral("best_of", sampling.n)
    fields.finish()
    served.require("completions")
    prompts = await run_in_threadpool(
        lambda: [served.model._prompt_ids(prompt) for prompt in prompts])
    choices = Choices(served, prompts, sampling, service.metrics)
    return await respond(choices, _Answer(choices, logprobs), settings)


def _read_logprobs(fields):
    """Whether the tokens come with their log-probabilities; other tokens have none."""
    found = fields.integer("logprobs", 0, 5, None)
    if found:
        raise ApiError(400, f"logprobs: found {found}, expected 0: only the log-probability of the "
                       "chosen token is known", "logprobs", "unsupported_parameter")
    return found is not None


class _Answer:
    """The answer to a request, whole or in chunks."""

    def __init__(self, choices, logprobs):
        self._choices = choices
        self._logprobs = logprobs
        self._tokenizer = choices.served.model.tokenizer
        self._id, self._created = new_id("cmpl"), now()

    def _object(self, choices, **more):
        return {"id": self._id, "object": "text_completion", "created": self._created,
                "model": self._choices.served.name, "choices": choices, **more}

    def _choice(self, i, text, logprobs, reason):
        return {"index": i, "text": text, "logprobs": logprobs,
                "finish_reason": FINISH_REASONS.get(reason)}

    def _entry(self, pieces, tokens, offset):
        if not self._logprobs:
            return None
        return completion_entry([pieces.piece(id) for id, _ in tokens],
                                [logprob for _, logprob in tokens], offset)

    def whole(self, generations):
        choices = []
        for i, made in enumerate(generations):
            entry = self._entry(Pieces(self._tokenizer), written(made), 0)
            choices.append(self._choice(i, made.text, entry, made.finish_reason))
        new_tokens = sum(len(made.ids) for made in generations)
        return self._object(choices, usage=self._choices.usage(new_tokens))

    async def chunks(self, streams):
        """One chunk for the tokens of a choice that have come together."""
        pieces = [Pieces(self._tokenizer) for _ in range(len(streams))]
        offsets, new_tokens = [0] * len(streams), 0
        more = {"usage": None} if self._choices.sampling.include_usage else {}
        async with aclosing(streams.merged()) as merged:
            async for i, tokens in merged:
                new_tokens += len(tokens)
                text = "".join(token.text for token in tokens)
                listed = written_now(tokens)
                reason = tokens[-1].finish_reason
                if text or reason in FINISH_REASONS or (self._logprobs and listed):
                    entry = self._entry(pieces[i], listed, offsets[i])
                    yield self._object([self._choice(i, text, entry, reason)], **more)
                offsets[i] += len(text)
        if self._choices.sampling.include_usage:
            yield self._object([], usage=self._choices.usage(new_tokens))
