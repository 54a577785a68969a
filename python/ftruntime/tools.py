"""convert() and calibrate(): the programs ft-convert and ft-calibrate of this wheel.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import Any, Callable, List, Optional, Union

from ._library import FOLDER, LIBRARY, OWN_LIBRARY, error, lib

Path = Union[str, os.PathLike]
Progress = Callable[[str, int, int], None]

# "observing: 64 of 200 samples, 12.3/s, 11 s left" on a terminal
PROGRESS = re.compile(r"([\w -]+): ([0-9]+) of ([0-9]+) ")
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def convert(checkpoint: Path, output: Path, progress: Optional[Progress] = None,
            **options: Any) -> None:
    """Convert a Hugging Face checkpoint into a float artifact.

    Args:
        checkpoint: its folder.
        output: the artifact, which must not exist unless force=True.
        progress: called with what is done, how much of it, and the total.
        options: long options of ft-convert(1), with _ for -: rotate=True, dtype="f16".

    Raises:
        FtError: with the message of ft-convert.
    """
    _run("ft-convert", checkpoint, output, progress, options)


def calibrate(model: Path, output: Path, progress: Optional[Progress] = None,
              **options: Any) -> None:
    """Quantize an artifact.

    Args:
        model: a float artifact.
        output: the quantized artifact, which must not exist unless force=True.
        progress: called with what is done, how much of it, and the total.
        options: long options of ft-calibrate(1), with _ for -: scheme="w4a16", text="samples.txt",
            group=64, asym=True; a list repeats an option.

    Raises:
        FtError: with the message of ft-calibrate.
    """
    _run("ft-calibrate", model, output, progress, options)


def _arguments(options) -> List[str]:
    arguments = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            arguments += [option] if one is True else [option, os.fspath(one) if isinstance(
                one, os.PathLike) else str(one)]
    return arguments


def _lines(terminal):
    """What a program writes to its terminal, cut at line ends and where it rewrites a line."""
    rest = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # EIO: the program has closed its side
            data = b""
        parts = re.split(rb"[\r\n]+", rest + data)
        rest = parts.pop()
        yield from (part for part in parts if part)
        if not data:
            if rest:
                yield rest
            return


def _environment():
    """No wrapped messages; and the library with CUDA where this process uses it."""
    found = dict(os.environ, COLUMNS="1000")
    if LIBRARY != OWN_LIBRARY:
        found["LD_PRELOAD"] = LIBRARY
    return found


def _run(tool, source, output, progress, options):
    command = [os.path.join(FOLDER, "bin", tool), "-i", os.fspath(source), "-o", os.fspath(output),
               *_arguments(options)]
    reader, terminal = pty.openpty()
    messages = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=terminal, env=_environment()) as process:
        os.close(terminal)
        try:
            for line in _lines(reader):
                text = ESCAPES.sub("", line.decode("utf-8", "replace")).strip()
                found = PROGRESS.match(text)
                if found is None:
                    messages.append(text)
                elif progress is not None:
                    progress(found.group(1), int(found.group(2)), int(found.group(3)))
        except BaseException:
            process.terminate()
            raise
        finally:
            os.close(reader)
    if process.returncode != 0:
        raise _failure(tool, process.returncode, messages)


def _failure(tool, status, messages):
    """The last message of a tool; its exit status tells invalid arguments from other errors."""
    code = lib.FT_EARG if status == 2 else lib.FT_EIO
    begins = [i for i, text in enumerate(messages) if text.startswith(tool + ": ")]
    text = " ".join(messages[begins[-1]:] if begins else messages)
    return error(text or f"{tool}: ended with status {status}", code)
