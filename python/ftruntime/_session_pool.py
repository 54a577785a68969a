"""Sessions that wait for the next call, so that it need not open one.

SPDX-License-Identifier: Apache-2.0
"""
from .session import Session

IDLE_TOKENS = 16384  # of all sessions that wait: what bounds their memory


class SessionPool:
    """The sessions of one model that no call uses now, those used last at the end."""

    def __init__(self):
        import threading  # which takes a while, and models take longer

        self._lock = threading.Lock()
        self._idle = []

    def take(self, model, sizes, fixed=()):
        """The smallest session that is large enough, or a new one.

        Args:
            sizes: the session's options by name, all positive.
            fixed: names of sizes that must be equal, because a larger one gives other results.
        """
        with self._lock:
            fitting = [kept for kept in self._idle if _fits(kept.sizes, sizes, fixed)]
            if fitting:
                kept = min(fitting, key=lambda kept: _tokens(kept.sizes))
                self._idle.remove(kept)
                return kept
        return Kept(model, _shared(model, sizes, fixed))

    def put(self, kept):
        """Keep a session after its call; those that waited longest make room for it."""
        with self._lock:
            self._idle.append(kept)
            tokens = sum(_tokens(waiting.sizes) for waiting in self._idle)
            while tokens > IDLE_TOKENS:
                tokens -= _tokens(self._idle.pop(0).sizes)


class Kept(Session):
    """A session with its sizes."""

    def __init__(self, model, sizes):
        super().__init__(model, **sizes)
        self.sizes = sizes


def _fits(have, need, fixed):
    return have.keys() == need.keys() and all(
        have[name] == size if name in fixed else have[name] >= size for name, size in need.items())


def _tokens(sizes):
    return sum(size for name, size in sizes.items() if name.endswith("_tokens"))


def _shared(model, sizes, fixed):
    """Sizes rounded up to powers of two, so that similar calls share a session, unless it would
    be too large to wait.
    """
    rounded = {name: size if name in fixed else 1 << (size - 1).bit_length()
               for name, size in sizes.items()}
    if "context" in sizes:
        rounded["context"] = min(rounded["context"], max(sizes["context"], model.max_positions))
    return rounded if _tokens(rounded) <= IDLE_TOKENS else sizes
