"""The choices of a request: texts that the engine writes at the same time.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import List

from .disconnect import all_results, cancelled
from .sampling import Sampling
from .served import Served

FINISH_REASONS = {"stop_id": "stop", "stop_string": "stop", "length": "length"}


def written(generation):
    """(id, log-probability) of each token that is part of the text."""
    tokens = list(zip(generation.ids, generation.logprobs))
    return tokens[:-1] if generation.finish_reason == "stop_id" else tokens


def written_now(tokens):
    """The same of tokens of a stream."""
    return [(token.id, token.logprob) for token in tokens if token.finish_reason != "stop_id"]


@dataclass
class Choices:
    """All choices of a request: sampling.n of each prompt."""

    served: Served
    prompts: List[List[int]]
    sampling: Sampling
    metrics: object

    def _requests(self):
        for ids in self.prompts:
            for i in range(self.sampling.n):
                yield ids, self.sampling.of_choice(i)

    def _count(self):
        return len(self.prompts) * self.sampling.n

    def usage(self, new_tokens):
        """How many tokens were read and written."""
        prompt = sum(len(ids) for ids in self.prompts)
        return {"prompt_tokens": prompt, "completion_tokens": new_tokens,
                "total_tokens": prompt + new_tokens}

    async def all(self):
        """The Generation of each choice."""
        with self.served.places.take(self._count()):
            return await all_results([self.served.engine.complete(ids, **options)
                                      for ids, options in self._requests()])

    def start(self, most_unread):
        """Submit all choices as streams, which close() cancels."""
        return Streams(self, most_unread)


class Streams:
    """The streams of all choices, merged."""

    def __init__(self, choices, most_unread):
        self._stack = ExitStack()
        self._streams = streams = []
        self._first_token = choices.metrics.first_token(choices.served.name)
        self._since = time.monotonic()
        self._stack.enter_context(choices.served.places.take(choices._count()))
        self._stack.callback(lambda: [stream.cancel() for stream in streams])
        try:
            for ids, options in choices._requests():
                streams.append(choices.served.engine.generate(ids, most_unread=most_unread,
                                                              **options))
        except BaseException:
            self.close()
            raise

    def __len__(self):
        return len(self._streams)

    async def merged(self):
        """(number of the choice, tokens of it that have come), until all have ended."""
        taking = {}
        try:
            for i, stream in enumerate(self._streams):
                taking[asyncio.ensure_future(stream.take())] = i
            while taking:
                done, _ = await asyncio.wait(taking, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    i, tokens = taking.pop(task), task.result()
                    if not tokens:
                        continue
                    self._note_first()
                    yield i, tokens
                    taking[asyncio.ensure_future(self._streams[i].take())] = i
        finally:
            await cancelled(*taking)

    def _note_first(self):
        if self._since is not None:
            self._first_token.observe(time.monotonic() - self._since)
            self._since = None

    def close(self):
        self._stack.close()
