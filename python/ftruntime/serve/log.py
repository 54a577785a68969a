"""The log: entries on stderr, as far as its disk has room.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import logging
import os

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class Log(logging.Handler):
    """Writes entries to a file.  It counts those that it cannot write, and says so when it can."""

    def __init__(self, file=2):
        super().__init__()
        self.setFormatter(logging.Formatter(FORMAT))
        self.lost = 0  # entries
        self._file = file
        self._unsaid = 0

    def emit(self, record):
        self.write(self.format(record))

    def write(self, entry):
        """Write an entry, unless that fails."""
        lines = [entry, ""]
        if self._unsaid:
            # The last of them may be there in part.
            lines[:0] = ["", f"{self._unsaid} entries of the log could not be written"]
        try:
            self._write_all("\n".join(lines).encode("utf-8", "replace"))
        except OSError:
            self.lost += 1
            self._unsaid += 1
        else:
            self._unsaid = 0

    def _write_all(self, data):
        while data:
            data = data[os.write(self._file, data):]


def start_log(level):
    """The log of this process."""
    log = Log()
    logging.basicConfig(handlers=[log], level=logging.WARNING)
    logging.getLogger("ftruntime.serve").setLevel(level.upper())
    return log


def lost_entries():
    """How many entries the log of this process has lost."""
    return sum(handler.lost for handler in logging.getLogger().handlers
               if isinstance(handler, Log))
