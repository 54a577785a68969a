"""Connections with deadlines, so that no client holds one for nothing.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import socket
import struct

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


DISCARD = struct.pack("ii", 1, 0)  # struct linger: closing drops what the client has not read


class Timer:
    """Ends a connection, unless it is stopped."""

    def __init__(self, connection, seconds):
        self._connection = connection
        self._seconds = seconds
        self._handle = None

    def start(self):
        if self._handle is None:
            self._handle = self._connection.loop.call_later(self._seconds, self._end)

    def _end(self):
        transport = self._connection.transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DISCARD)
        transport.abort()

    def stop(self):
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def connections_of(settings):
    """The class of connections for uvicorn."""

    class Connection(H11Protocol):
        """Ends when the head of a request does not arrive, and when an answer is not read."""

        def connection_made(self, transport):
            super().connection_made(transport)
            self._head = Timer(self, settings.read_timeout)
            self._stalled = Timer(self, settings.write_timeout)
            self._head.start()

        def data_received(self, data):
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._head.start()
            else:
                self._head.stop()

        def pause_writing(self):
            super().pause_writing()
            self._stalled.start()

        def resume_writing(self):
            super().resume_writing()
            self._stalled.stop()

        def connection_lost(self, exc):
            self._head.stop()
            self._stalled.stop()
            super().connection_lost(exc)

    return Connection
