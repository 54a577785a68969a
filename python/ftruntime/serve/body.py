"""The body of a request: JSON, within limits of size and time.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import asyncio
import json

from .errors import ApiError

CLOSE = {"Connection": "close"}  # what the client still sends is not read


def _refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


async def read_json(request, settings):
    """The object in the body of a request."""
    _require_json(request)
    _require_length(request, settings)
    try:
        data = await asyncio.wait_for(_read(request, settings), settings.read_timeout)
    except asyncio.TimeoutError:
        raise ApiError(408, f"the body did not arrive within {settings.read_timeout:g} s",
                       code="timeout", headers=CLOSE) from None
    try:
        found = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not valid JSON", code="invalid_json") from None
    if not isinstance(found, dict):
        raise ApiError(400, f"the body: found {kind(found)}, expected an object",
                       code="invalid_type")
    return found


def _require_json(request):
    found = request.headers.get("content-type", "nothing").split(";")[0].strip().lower()
    if found != "application/json":
        raise ApiError(415, f"Content-Type: found {found[:80]}, expected application/json",
                       code="unsupported_media_type", headers=CLOSE)


def _too_large(settings):
    return ApiError(413, f"the body is larger than {settings.max_body} bytes",
                    code="body_too_large", headers=CLOSE)


def _require_length(request, settings):
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or len(length) > 18:
        raise ApiError(400, "Content-Length: found no number", headers=CLOSE)
    if int(length) > settings.max_body:
        raise _too_large(settings)


async def _read(request, settings):
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > settings.max_body:
            raise _too_large(settings)
    return bytes(data)


def kind(value):
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string",
             list: "an array", dict: "an object"}
    return names[type(value)]
