"""What an application may be told; the defaults of the command line, too.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Settings:
    """Limits and rights.  Times are in seconds."""

    host: str = "127.0.0.1"  # the address that the server is bound to
    api_keys: Tuple[str, ...] = ()  # any of them opens /v1 and /metrics; none: no key is asked for
    allow_hosts: Tuple[str, ...] = ()  # more names of this server in Host; "*": all
    allow_origins: Tuple[str, ...] = ()  # origins of pages elsewhere that may call it

    max_body: int = 4 << 20  # bytes of a request
    max_messages: int = 1024  # of a conversation
    max_inputs: int = 2048  # texts of a request for embeddings, a reranking or completions
    max_tokens: int = 0  # new tokens of a choice; 0: up to the context

    request_timeout: float = 600.0  # for the computation
    read_timeout: float = 30.0  # for the arrival of a request
    write_timeout: float = 30.0  # for a client that does not read its answer
    drain_timeout: float = 30.0  # for what runs at SIGTERM

    max_sequences: int = 64  # choices that run at the same time, of each model
    queue: int = 256  # choices that wait, of each model
    unread_tokens: int = 4096  # of a stream, for a client that reads slowly
    context: int = 0  # tokens of a sequence; 0: the model's positions, at most 4096
    cache_tokens: int = 0  # of the KV cache; 0: as of Engine
    threads: int = 0  # of each model; 0: all processors
