"""POST /v1/completions: continue texts, or token ids.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from contextlib import aclosing

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from ..choices import FINISH_REASONS, Choices
from ..errors import ApiError
from ..fields import checked_list, checked_text, invalid, shown
from ..stamp import new_id, now
from ..logprobs import Pieces, completion_entry
from ..sampling import read_ids, read_max_tokens, read_sampling
from ..sse import EventStream

MAX_TOKENS = 16  # the default of OpenAI


async def create(service, fields):
    settings = service.settings
    served = service.models.get(fields.text("model"))
    prompts = _read_prompts(fields, settings)
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
    answer = _Answer(choices, logprobs)
    if not sampling.stream:
        return JSONResponse(answer.whole(await choices.all()))
    streams = choices.start(settings.unread_tokens)
    return EventStream(answer.chunks(streams), streams.close, served)


def _read_prompts(fields, settings):
    """A text, token ids, or an array of them."""
    value = fields.require("prompt", "a text, token ids, or an array of them")
    if isinstance(value, str):
        return [checked_text(value, "prompt")]
    if isinstance(value, list) and value and isinstance(value[0], int):
        return [read_ids(value, "prompt", settings.max_body)]
    prompts = checked_list(value, "prompt", settings.max_inputs, "prompts")
    return [_read_prompt(prompt, f"prompt[{i}]", settings) for i, prompt in enumerate(prompts)]


def _read_prompt(value, path, settings):
    if isinstance(value, str):
        return checked_text(value, path)
    if isinstance(value, list):
        return read_ids(value, path, settings.max_body)
    raise invalid(path, shown(value), "a text or token ids")


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
            tokens = list(zip(made.ids, made.logprobs))
            if made.finish_reason == "stop_id":
                tokens.pop()
            entry = self._entry(Pieces(self._tokenizer), tokens, 0)
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
                listed = [(token.id, token.logprob) for token in tokens
                          if token.finish_reason != "stop_id"]
                reason = tokens[-1].finish_reason
                if text or reason in FINISH_REASONS or (self._logprobs and listed):
                    entry = self._entry(pieces[i], listed, offsets[i])
                    yield self._object([self._choice(i, text, entry, reason)], **more)
                offsets[i] += len(text)
        if self._choices.sampling.include_usage:
            yield self._object([], usage=self._choices.usage(new_tokens))
