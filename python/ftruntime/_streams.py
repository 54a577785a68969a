"""What the engine's thread computes, handed to the event loop of asyncio.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from collections import deque

from ._library import error, lib

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import List

    from ._generation import Token


def call_soon(loop, function, *arguments):
    """Call a function in the thread of a loop; False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return False
    return True


def settle(future, result, failure):
    """Give a future its result, or an exception, unless its task has gone."""
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)


class Stream:
    """The tokens of a request, for `async for`; made by Engine.generate().

    It belongs to one task.  Without a reader any more, the request is cancelled.
    """

    def __init__(self, engine, loop, most_unread):
        self.id = 0
        self._engine = engine
        self._loop = loop
        self._most_unread = most_unread or float("inf")
        self._unread = deque()
        self._ended = False
        self._failure = None
        self._waking = False
        self._waiter = None

    # ---- In the engine's thread ----------------------------------------------------------------

    def put(self, token):
        if len(self._unread) >= self._most_unread:
            raise error(f"the reader is {len(self._unread)} tokens behind", lib.FT_ECANCELLED)
        self._unread.append(token)
        return self._notify()

    def end(self, failure):
        self._failure = failure
        self._ended = True
        self._notify()

    def _notify(self):
        if self._waking:
            return not self._loop.is_closed()
        self._waking = True
        return call_soon(self._loop, self._wake)

    # ---- In the loop ---------------------------------------------------------------------------

    def _wake(self):
        self._waking = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _available(self):
        """Wait for tokens; False: there are no more."""
        while True:
            ended = self._ended  # before the look at the tokens, which the thread may add
            if self._unread:
                return True
            if ended:
                break
            self._waiter = self._loop.create_future()
            await self._waiter
        if self._failure is not None:
            raise self._failure
        return False

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Token:
        if not await self._available():
            raise StopAsyncIteration
        return self._unread.popleft()

    async def take(self) -> List[Token]:
        """The tokens that have come, at least one; an empty list at the end."""
        if not await self._available():
            return []
        return [self._unread.popleft() for _ in range(len(self._unread))]

    def cancel(self) -> None:
        """End the request before the next forward pass; the stream then raises FT_ECANCELLED."""
        if not self._ended:
            self._engine.cancel(self.id)

    def __del__(self):
        self.cancel()
