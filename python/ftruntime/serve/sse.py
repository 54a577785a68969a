"""Server-sent events: a response that is sent as it is computed.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import json
from contextlib import aclosing

from starlette.responses import Response

from .disconnect import unless_disconnected
from .errors import api_error

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"),
           (b"x-accel-buffering", b"no")]


def event(value):
    """An object as an event, in ASCII: clients may take other line separators for line ends."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


class EventStream(Response):
    """Events of an asynchronous iterator of objects, and [DONE].

    A failure becomes the last event, without [DONE].  `close` is called in every case.
    """

    def __init__(self, objects, close, served):
        super().__init__()
        self._objects = objects
        self._close = close
        self._served = served

    async def __call__(self, scope, receive, send):
        try:
            await unless_disconnected(receive, self._send(send))
        finally:
            self._close()

    async def _send(self, send):
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        async with aclosing(self._events()) as events:
            async for data in events:
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _events(self):
        try:
            async with aclosing(self._objects) as objects:
                async for value in objects:
                    yield event(value)
        except Exception as failure:
            yield event(api_error(failure, [self._served]).body())
        else:
            yield DONE
