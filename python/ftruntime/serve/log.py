"""The log: entries on the standard error, as far as its disk has room.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import logging
import os


class Log(logging.Handler):
    """Writes entries to a file.  It counts those that it cannot write, and says so when it can."""

    def __init__(self, file):
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self.lost = 0  # entries
        self._file = file
        self._unsaid = 0

    def emit(self, record):
        self.write(self.format(record))

    def write(self, entry):
        """Write an entry, or lose it: a full disk must not end a server."""
        lines = [entry, ""]
        if self._unsaid:
            # The last of them may be there in part.
            lines[:0] = ["", f"{self._unsaid} entries of the log could not be written"]
        try:
            self._write_all("\n".join(lines).encode("utf-8", "backslashreplace"))
        except OSError:
            self.lost += 1
            self._unsaid += 1
        else:
            self._unsaid = 0

    def _write_all(self, data):
        while data:
            data = data[os.write(self._file, data):]


STANDARD_ERROR = Log(2)


def set_up(level):
    """Log the requests from this level on, and what else goes wrong."""
    logging.basicConfig(handlers=[STANDARD_ERROR], level=logging.WARNING)
    logging.getLogger("ftruntime.serve").setLevel(level.upper())
