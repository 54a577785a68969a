"""ftruntime: run quantized transformers on CPUs with libftruntime.

    import ftruntime as ft

    model = ft.Model.open("model.int8.ft")
    model.classify(["some text"])

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from collections import namedtuple

from ._generation import Generation, Hypothesis, Token
from ._library import FtError, ffi, lib
from ._tasks import Answer, Entity, Prediction, Word
from .model import Model
from .session import Binding, Session
from .tokenizer import Encoding, Tokenizer

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import List

    from .engine import Engine, EngineStats
    from .tools import calibrate, convert

__all__ = ["Answer", "Binding", "Device", "Encoding", "Engine", "EngineStats", "Entity", "FtError",
           "Generation", "Hypothesis", "Model", "Prediction", "Session", "Token", "Tokenizer",
           "Word", "calibrate", "convert", "devices"]

__version__ = ffi.string(lib.ft_version()).decode()


class Device(namedtuple("Device", "name detail usable")):
    """A device that Model.open() may use."""

    __slots__ = ()

    name: str  # "cpu", "cuda:0"
    detail: str  # processor or GPU and instruction set, or why it is not usable
    usable: bool


def devices() -> List[Device]:
    """The CPU, then the GPUs; without a GPU one "cuda" entry with the reason."""
    count = lib.ft_devices(ffi.NULL, 0)
    found = ffi.new("ft_device_info[]", count)
    count = min(count, lib.ft_devices(found, count))
    return [Device(ffi.string(d.name).decode(), ffi.string(d.detail).decode("utf-8", "replace"),
                   d.usable) for d in found[0:count]]


def __getattr__(name):
    """What needs modules for subprocesses or threads loads them when it is first named."""
    if name in ("calibrate", "convert"):
        from . import tools

        return getattr(tools, name)
    if name in ("Engine", "EngineStats"):
        from . import engine

        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
