"""The process: a socket, uvicorn, and signals that end it in order.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import asyncio
import signal
import socket

import uvicorn

from .connections import connections_of


class Server(uvicorn.Server):
    """Ends with status 0 after SIGTERM: what runs is finished, what comes is refused."""

    def __init__(self, config, service, announce):
        super().__init__(config)
        self._service = service
        self._announce = announce

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self._announce()

    def handle_exit(self, sig, frame):
        self._service.draining = True
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


UNSENT = 1 << 17  # bytes that the kernel keeps for a client that does not read


def bind(host, port):
    """A socket at an address, which does not listen yet."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def url_of(bound):
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _until_cancelled(app):
    """The application, whose requests end silently when the time for draining is over."""

    async def wrapped(scope, receive, send):
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise

    return wrapped


def run(app, settings, bound, announce):
    """Serve until a signal has come and what runs has ended; announce() when it begins."""
    config = uvicorn.Config(_until_cancelled(app), http=connections_of(settings), ws="none",
                            lifespan="on", log_config=None, access_log=False, proxy_headers=False,
                            server_header=False,
                            timeout_graceful_shutdown=settings.drain_timeout)
    Server(config, app.state.service, announce).run([bound])
