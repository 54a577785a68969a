"""The middleware in front of all endpoints: rights, errors, headers, metrics and the log.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import logging
import time
import traceback

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from .errors import ApiError, api_error
from .hosts import allowed_origin, require_host
from .keys import require_key

logger = logging.getLogger("ftruntime.serve")

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
                               "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

CORS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "600",
}

MODEL = "/v1/models/"  # and a name
PUBLIC = ("/", "/chat.js", "/chat.css", "/health")  # without a key
WITHOUT_LOG = ("/health", "/metrics")
CLIENT_HAS_GONE = 499


class Guard:
    """Lets a request through to the application, or answers with an error.

    The log has no header, body or query of a request: they may be keys and prompts.
    """

    def __init__(self, app, service, paths):
        self._app = app
        self._service = service
        self._paths = paths

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send, self._paths)
        self._service.metrics.in_progress += 1
        try:
            await self._answer(exchange, scope, receive)
        finally:
            self._service.metrics.in_progress -= 1
            self._note_end(exchange)

    async def _answer(self, exchange, scope, receive):
        try:
            response = self._app if self._admit(exchange, scope) else Response(status_code=204,
                                                                               headers=CORS)
            await response(scope, receive, exchange.send)
        except Exception as failure:
            if not isinstance(failure, ApiError):
                _log_failure(failure)
            if exchange.status is None:
                error = api_error(failure, self._service.models)
                await error.response()(scope, receive, exchange.send)

    def _admit(self, exchange, scope):
        """Whether the application answers; False: it is a question about CORS."""
        headers, settings = Headers(scope=scope), self._service.settings
        require_host(headers, settings)
        exchange.origin = allowed_origin(headers, settings)
        if exchange.origin is not None and scope["method"] == "OPTIONS":
            return False
        if exchange.path not in PUBLIC:
            require_key(headers, settings.api_keys)
            self._service.require_open()
        return True

    def _note_end(self, exchange):
        status = exchange.status or CLIENT_HAS_GONE
        seconds = time.monotonic() - exchange.since
        self._service.metrics.end_request(exchange.endpoint, status, seconds)
        level = logging.DEBUG if exchange.path in WITHOUT_LOG else logging.INFO
        logger.log(level, "%s %s %s %d %.3f s", exchange.client, exchange.method,
                   exchange.endpoint, status, seconds)


class _Exchange:
    """A request and what has been sent of its response."""

    def __init__(self, scope, send, paths):
        self._send = send
        self._paths = paths
        self.since = time.monotonic()
        self.method = scope["method"] if scope["method"].isalpha() else "?"
        self.client = (scope.get("client") or ("-", 0))[0]
        self.path = scope["path"][len(scope.get("root_path", "")):]
        self.origin = None
        self.status = None

    @property
    def endpoint(self):
        """The path, without what is up to the client."""
        if self.path.startswith(MODEL):
            return MODEL
        return self.path if self.path in self._paths else "other"

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            headers.update(SECURITY)
            if self.origin is not None:
                headers["Access-Control-Allow-Origin"] = self.origin
            headers.add_vary_header("Origin")
        await self._send(message)


def _log_failure(failure):
    """Where an exception was raised, without its text, which may have parts of a prompt."""
    frames = "".join(traceback.format_tb(failure.__traceback__))
    logger.error("%s in a request\n%s", type(failure).__name__, frames)
