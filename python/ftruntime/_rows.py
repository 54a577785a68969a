"""Texts as rows of token ids, and forward passes over them in batches, as ft-run makes them.

SPDX-License-Identifier: Apache-2.0
"""
from ._arrays import numpy
from ._library import encoded, error, ffi, lib, opened

MAX_TOKENS = 4096  # of a pass
MAX_SEQUENCES = 512
PAGE_TOKENS = 64  # of the KV cache
ENGINE_ROWS = 64  # of a pass of an engine, by default


def encode_rows(model, texts, truncate=False, max_length=0, prompt=""):
    """Encodings (C structures) of texts, or of pairs given as tuples.

    Truncates to the model's max_seq_length, or to max_length if that is less.  The prompt stands
    before each text.
    """
    info = model._info
    limit = min(max_length or info.max_seq_length, info.max_seq_length)
    limit = limit if truncate or max_length else 0
    rows = []
    for i, text in enumerate(texts):
        text, pair = (text, None) if isinstance(text, str) else text
        if prompt and pair is not None:
            raise error(f"text {i}: found a pair of texts, but the model puts a prompt before a "
                        "text: expected one text", lib.FT_EUNSUPPORTED)
        row = model.tokenizer._encode((prompt + text).encode(),
                                      None if pair is None else pair.encode(), True, limit)
        if row.count > info.max_positions:
            raise error(f"text {i}: {row.count} tokens, but the model has {info.max_positions} "
                        "positions: pass truncate=True", lib.FT_ELIMIT)
        rows.append(row)
    return rows


def encode_windows(model, question, context):
    """Encodings of a question with the parts of a context, which overlap, as ft-run makes them."""
    question, context, limit = question.encode(), context.encode(), model.max_seq_length
    windows = opened("ft_context_windows", lib.ft_context_windows_free, lib.ft_context_windows_new,
                     model.tokenizer._tokenizer, question, len(question), context, len(context))
    fixed = lib.ft_context_windows_fixed_tokens(windows)
    if fixed >= limit:
        raise error(f"question: found {fixed} tokens, special ones included, expected less than "
                    f"{limit}", lib.FT_ELIMIT)
    rows = []
    while True:
        row = encoded(lib.ft_context_windows_next, windows, limit, lib.FT_CONTEXT_STRIDE)
        if row == ffi.NULL:
            return rows
        rows.append(row)


class Row:
    """Token ids in place of an encoding."""

    def __init__(self, ids):
        self.count = len(ids)
        self.ids = ffi.new("int32_t[]", list(ids) or 1)
        self.type_ids = ffi.new("int32_t[]", max(self.count, 1))


def batches(rows, max_tokens=MAX_TOKENS, max_sequences=MAX_SEQUENCES):
    """Slices of rows that one pass holds: at most max_tokens, but at least one row."""
    first, tokens = 0, 0
    for i, row in enumerate(rows):
        if i > first and (tokens + row.count > max_tokens or i - first == max_sequences):
            yield first, i
            first, tokens = i, 0
        tokens += row.count
    if rows:
        yield first, len(rows)


def padded(rows, has_types):
    """The inputs of a pass, right-padded: int32 arrays [rows, longest]."""
    np = numpy()
    shape = len(rows), max(row.count for row in rows)
    ids, mask = np.zeros(shape, "int32"), np.zeros(shape, "int32")
    types = np.zeros(shape, "int32")
    for i, row in enumerate(rows):
        ids[i, :row.count] = _ids(row.ids, row.count)
        types[i, :row.count] = _ids(row.type_ids, row.count)
        mask[i, :row.count] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    if has_types:
        inputs["token_type_ids"] = types
    return inputs


def _ids(pointer, count):
    return numpy().frombuffer(ffi.buffer(pointer, count * 4), "int32")


def forward(model, rows, names):
    """Run all rows; yields (first row, outputs by name) of each batch."""
    if not rows:
        return
    longest = max(row.count for row in rows)
    total = sum(row.count for row in rows)
    options = {
        "max_tokens": max(min(total, MAX_TOKENS), longest, 1),
        "max_sequences": min(len(rows), MAX_SEQUENCES),
    }
    if "kv_heads" in model.config:
        # The KV cache holds a full batch, with one partial page per sequence.
        options["context"] = longest
        options["cache_tokens"] = options["source_tokens"] = (
            options["max_tokens"] + options["max_sequences"] * PAGE_TOKENS)
    session = model._sessions.take(model, options)
    has_types = model.config.get("types", 0) > 0
    for first, end in batches(rows):
        yield first, session.run(padded(rows[first:end], has_types), names)
    model._sessions.put(session)
