"""The log: lines to the standard error, which may fail without a consequence.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import logging
import os

STANDARD_ERROR = 2


def write_line(text):
    """Write a line, or lose it: a full disk must not end a server."""
    try:
        os.write(STANDARD_ERROR, (text + "\n").encode("utf-8", "backslashreplace"))
    except OSError:
        pass


class _Handler(logging.Handler):
    def emit(self, record):
        write_line(self.format(record))


def set_up(level):
    """Log the requests from this level on, and what else goes wrong."""
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("ftruntime.serve").setLevel(level.upper())
