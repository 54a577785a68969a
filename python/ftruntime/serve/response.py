"""Responses to requests for texts.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from starlette.responses import JSONResponse

from .sse import EventStream


async def respond(choices, answer, settings):
    """One object, or events as the choices are computed."""
    if not choices.sampling.stream:
        return JSONResponse(answer.whole(await choices.all()))
    streams = choices.start(settings.unread_tokens)
    return EventStream(answer.chunks(streams), streams.close, choices.served)
