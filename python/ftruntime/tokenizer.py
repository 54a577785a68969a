"""Tokenizers: texts to token ids and back.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import os
from collections import namedtuple

from ._library import call, encoded, ffi, lib, opened

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Tuple, Union

    from .model import Model


class Encoding(namedtuple("Encoding", "ids type_ids sequence offsets words truncated")):
    """A text, or a pair of texts, as tokens; all lists have one element per token."""

    __slots__ = ()

    ids: List[int]
    type_ids: List[int]  # token_type_ids
    sequence: List[int]  # 0: of the text, 1: of its pair, -1: a special token added
    offsets: List[Tuple[int, int]]  # characters [start, end) of its own text; 0, 0 for special ones
    words: List[int]  # number of the word from 0 in each text; -1 for special tokens
    truncated: bool  # tokens were left out because of max_length


class _Characters:
    """Converts offsets from bytes to characters; bytes are characters in ASCII."""

    def __init__(self, data: bytes):
        self._at = None
        if not data.isascii():
            self._at, count = [0], 0
            for i in range(1, len(data) + 1):
                count += i == len(data) or data[i] & 0xC0 != 0x80
                self._at.append(count)

    def range(self, found):
        if self._at is None:
            return found.start, found.end
        return self._at[found.start], self._at[found.end]


class Tokenizer:
    """The tokenizer inside a model, or of a tokenizer.json.  Thread-safe."""

    def __init__(self, source: "Union[Model, str, os.PathLike]"):
        """Open a tokenizer.

        Args:
            source: a Model, or the path of a tokenizer.json.

        Raises:
            FtError: FT_EUNSUPPORTED if a model has no tokenizer; FT_EFORMAT.
        """
        if isinstance(source, (str, os.PathLike)):
            self._tokenizer = opened("ft_tokenizer", lib.ft_tokenizer_close, lib.ft_tokenizer_open,
                                     os.fsencode(source))
        else:
            self._tokenizer = opened("ft_tokenizer", lib.ft_tokenizer_close,
                                     lib.ft_tokenizer_open_model, source._model,
                                     owner=source._model)

    def encode(self, text: str, pair: Optional[str] = None, *, add_special_tokens: bool = True,
               max_length: int = 0) -> Encoding:
        """Encode a text or a pair of texts as one sequence.

        Args:
            add_special_tokens: add those of the post-processor.
            max_length: truncate to this many tokens, of a pair from the longer text first;
                0: no limit.

        Raises:
            FtError: FT_EUNSUPPORTED for a pair without a template for pairs; FT_ELIMIT if
                max_length has no room for the special tokens.
        """
        text_bytes = text.encode()
        pair_bytes = None if pair is None else pair.encode()
        found = self._encode(text_bytes, pair_bytes, add_special_tokens, max_length)
        characters = _Characters(text_bytes), _Characters(pair_bytes or b"")
        count = found.count
        sequence = ffi.unpack(found.sequence, count) if count else []
        return Encoding(
            ids=ffi.unpack(found.ids, count) if count else [],
            type_ids=ffi.unpack(found.type_ids, count) if count else [],
            sequence=sequence,
            offsets=[characters[s == 1].range(found.offsets[i]) for i, s in enumerate(sequence)],
            words=ffi.unpack(found.words, count) if count else [],
            truncated=found.truncated)

    def _encode(self, text, pair, special, max_length):
        """An ft_encoding with offsets in bytes."""
        kept = ffi.NULL if pair is None else ffi.from_buffer("char[]", pair)
        options = ffi.new("ft_encode_options *", {
            "pair": kept,
            "pair_bytes": len(pair or b""),
            "no_special_tokens": not special,
            "offsets": True,
            "max_length": max_length,
        })
        return encoded(lib.ft_tokenizer_encode_text, self._tokenizer, text, len(text), options)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Decode ids to text.  Ids without a token are ignored."""
        array = ffi.new("int32_t[]", list(ids))
        size = ffi.new("size_t *")
        call(lib.ft_tokenizer_decode, self._tokenizer, array, len(array), skip_special_tokens,
             ffi.NULL, 0, size)
        text = ffi.new("char[]", size[0] + 1)
        call(lib.ft_tokenizer_decode, self._tokenizer, array, len(array), skip_special_tokens, text,
             size[0], size)
        return ffi.buffer(text, size[0])[:].decode()

    def token_to_id(self, token: str) -> Optional[int]:
        """The id of a token as written in tokenizer.json, or None."""
        found = lib.ft_tokenizer_token_to_id(self._tokenizer, token.encode())
        return None if found < 0 else found

    def id_to_token(self, id: int) -> Optional[str]:
        """The token of an id as written in tokenizer.json, or None."""
        size = ffi.new("size_t *")
        found = lib.ft_tokenizer_id_to_token(self._tokenizer, id, size)
        if found == ffi.NULL:
            return None
        return ffi.buffer(found, size[0])[:].decode("utf-8", "replace")

    def is_special(self, id: int) -> bool:
        """Whether an id is a special token."""
        return lib.ft_tokenizer_is_special(self._tokenizer, id)

    def __len__(self) -> int:
        """Number of tokens; ids may have gaps, so the largest id may exceed it."""
        return lib.ft_tokenizer_vocab_size(self._tokenizer)
