"""Sessions that wait for the next call, so that it need not open one.

SPDX-License-Identifier: Apache-2.0
"""
from .session import Session

IDLE_BYTES = 512 << 20  # of all sessions that wait


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
                kept = min(fitting, key=lambda kept: kept.bytes)
                self._idle.remove(kept)
                return kept
        shared = _rounded(model, sizes, fixed)
        return Kept(model, shared if _bytes(model, shared) <= IDLE_BYTES else sizes)

    def put(self, kept):
        """Keep a session after its call, unless it is too large; those that waited longest make
        room for it.
        """
        if kept.bytes > IDLE_BYTES:
            return
        with self._lock:
            self._idle.append(kept)
            waiting = sum(kept.bytes for kept in self._idle)
            while waiting > IDLE_BYTES:
                waiting -= self._idle.pop(0).bytes


class Kept(Session):
    """A session with its sizes and about how much memory it takes."""

    def __init__(self, model, sizes):
        super().__init__(model, **sizes)
        self.sizes = sizes
        self.bytes = _bytes(model, sizes)


def _fits(have, need, fixed):
    return have.keys() == need.keys() and all(
        have[name] == size if name in fixed else have[name] >= size for name, size in need.items())


def _bytes(model, sizes):
    """About the memory of a session: activations, logits, keys and values."""
    config = model.config
    tokens, has_cache = sizes["max_tokens"], "kv_heads" in config
    columns = 8 * config["hidden"] + 2 * config.get("ffn", 0)
    rows = sizes["max_sequences"] if has_cache else tokens if config.get("head") == "lm" else 0
    found = 4 * (tokens * columns + rows * model.vocabulary)
    if has_cache:
        cached = sizes["cache_tokens"] + sizes.get("source_tokens", 0)
        found += 8 * cached * config["layers"] * config["kv_heads"] * config["head_size"]
    return found


def _rounded(model, sizes, fixed):
    """Sizes rounded up to powers of two, so that similar calls share a session."""
    found = {name: size if name in fixed else 1 << (size - 1).bit_length()
             for name, size in sizes.items()}
    if "context" in sizes:
        found["context"] = min(found["context"], max(sizes["context"], model.max_positions))
    return found
