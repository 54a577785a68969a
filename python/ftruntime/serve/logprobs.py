"""Log-probabilities of the tokens that were chosen.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations


class Pieces:
    """The text that each token adds, as far as it is one."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._last = None

    def piece(self, id):
        """Behind the last token, because a decoder may strip the first space of a text."""
        before = [] if self._last is None else [self._last]
        self._last = id
        prefix = self._decode(before)
        whole = self._decode(before + [id])
        return whole[len(prefix):] if whole.startswith(prefix) else self._decode([id])

    def _decode(self, ids):
        return self._tokenizer.decode(ids, skip_special_tokens=False)


def chat_entry(piece, logprob):
    """A token as chats list it; bytes are unknown of parts of a character."""
    data = None if "\ufffd" in piece else list(piece.encode())
    return {"token": piece, "logprob": logprob, "bytes": data, "top_logprobs": []}


def completion_entry(pieces, logprobs, offset):
    """Tokens as completions list them."""
    offsets = []
    for piece in pieces:
        offsets.append(offset)
        offset += len(piece)
    return {"tokens": pieces, "token_logprobs": logprobs, "top_logprobs": None,
            "text_offset": offsets}
