"""Admission: so many choices run or wait, and a request beyond that is told to come back.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from contextlib import contextmanager

from .errors import ApiError


class Places:
    """The places of a model for choices that run or wait.  It belongs to one event loop."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.taken = 0

    @contextmanager
    def take(self, count=1):
        """Hold places for a block; 429 without enough of them, 400 if there are never enough."""
        if count > self.capacity:
            raise ApiError(400, f"the request asks for {count} choices, and the server has places "
                           f"for {self.capacity}", code="too_many_choices")
        if self.taken + count > self.capacity:
            raise ApiError(429, f"{self.taken} of {self.capacity} places are taken: try again "
                           "later", code="queue_full", headers={"Retry-After": "1"})
        self.taken += count
        try:
            yield
        finally:
            self.taken -= count
