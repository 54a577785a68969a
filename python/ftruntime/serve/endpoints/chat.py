"""POST /v1/chat/completions: continue a conversation.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from ... import _chat
from ..choices import FINISH_REASONS, Choices, written, written_now
from ..fields import checked_list, checked_text, invalid, shown
from ..logprobs import Pieces, chat_entry
from ..response import respond
from ..sampling import read_max_tokens, read_sampling
from ..stamp import new_id, now

ROLES = ("system", "developer", "user", "assistant")


async def create(service, fields):
    settings = service.settings
    served = service.models.get(fields.text("model"))
    messages = _read_messages(fields, settings)
    max_tokens = read_max_tokens(fields, settings, "max_completion_tokens", "max_tokens")
    sampling = read_sampling(fields, settings, max_tokens)
    logprobs = fields.boolean("logprobs")
    _refuse_unsupported(fields)
    fields.finish()
    served.require("chat")
    ids = await run_in_threadpool(_chat.encode, served.model._chat_template,
                                  served.model.tokenizer, messages, 0, True)
    choices = Choices(served, [ids], sampling, service.metrics)
    return await respond(choices, _Answer(choices, logprobs), settings)


def _refuse_unsupported(fields):
    fields.neutral("top_logprobs", 0)
    fields.neutral("tools", [])
    fields.neutral("tool_choice", "none", "auto")
    fields.neutral("functions", [])
    fields.neutral("function_call", "none", "auto")
    fields.neutral("parallel_tool_calls", True, False)
    fields.neutral("response_format", {"type": "text"})
    fields.neutral("modalities", ["text"])


# ---- Messages -----------------------------------------------------------------------------------


def _read_messages(fields, settings):
    values = checked_list(fields.require("messages", "an array of messages"), "messages",
                          settings.max_messages, "messages")
    return [_read_message(fields, value, f"messages[{i}]") for i, value in enumerate(values)]


def _read_message(fields, value, path):
    if not isinstance(value, dict):
        raise invalid(path, shown(value), "an object")
    message = fields.of(value, path)
    role = message.choice("role", ROLES, None)
    if role is None:
        message.require("role", "a string")
    content = _read_content(message.require("content", "a text"), f"{path}.content", fields)
    message.neutral("tool_calls", [])
    message.neutral("refusal", "")
    message.ignore("annotations")
    message.finish()
    return {"role": "system" if role == "developer" else role, "content": content}


def _read_content(value, path, fields):
    """A text, or an array of parts that are texts."""
    if not isinstance(value, list):
        return checked_text(value, path)
    texts = []
    for i, part in enumerate(value):
        if not isinstance(part, dict):
            raise invalid(f"{path}[{i}]", shown(part), "an object")
        part = fields.of(part, f"{path}[{i}]")
        part.choice("type", ("text",), "text")
        texts.append(checked_text(part.require("text", "a text"), f"{path}[{i}].text"))
        part.finish()
    return "".join(texts)


# ---- Answers ------------------------------------------------------------------------------------


class _Answer:
    """The answer to a request, whole or in chunks."""

    def __init__(self, choices, logprobs):
        self._choices = choices
        self._logprobs = logprobs
        self._tokenizer = choices.served.model.tokenizer
        self._id, self._created = new_id("chatcmpl"), now()

    def _object(self, kind, choices, **more):
        return {"id": self._id, "object": kind, "created": self._created,
                "model": self._choices.served.name, "choices": choices, **more}

    def _entries(self, pieces, tokens):
        """The logprobs of (id, log-probability) pairs; None if they were not asked for."""
        if not self._logprobs:
            return None
        return {"content": [chat_entry(pieces.piece(id), logprob) for id, logprob in tokens],
                "refusal": None}

    def whole(self, generations):
        choices = []
        for i, made in enumerate(generations):
            choices.append({
                "index": i,
                "message": {"role": "assistant", "content": made.text, "refusal": None},
                "logprobs": self._entries(Pieces(self._tokenizer), written(made)),
                "finish_reason": FINISH_REASONS[made.finish_reason],
            })
        new_tokens = sum(len(made.ids) for made in generations)
        return self._object("chat.completion", choices, usage=self._choices.usage(new_tokens))

    def _chunk(self, i, delta, logprobs=None, finish_reason=None):
        choice = {"index": i, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        more = {"usage": None} if self._choices.sampling.include_usage else {}
        return self._object("chat.completion.chunk", [choice], **more)

    async def chunks(self, streams):
        """One chunk for the tokens that have come together, and one for the end of a choice."""
        pieces = [Pieces(self._tokenizer) for _ in range(len(streams))]
        new_tokens = 0
        for i in range(len(streams)):
            yield self._chunk(i, {"role": "assistant", "content": ""})
        async with aclosing(streams.merged()) as merged:
            async for i, tokens in merged:
                new_tokens += len(tokens)
                reason = tokens[-1].finish_reason
                text = "".join(token.text for token in tokens)
                listed = written_now(tokens)
                if text or (self._logprobs and listed):
                    yield self._chunk(i, {"content": text}, self._entries(pieces[i], listed))
                if reason in FINISH_REASONS:
                    yield self._chunk(i, {}, None, FINISH_REASONS[reason])
        if self._choices.sampling.include_usage:
            yield self._object("chat.completion.chunk", [], usage=self._choices.usage(new_tokens))
