"""Texts of a request: strings or token ids, one or many.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from .fields import checked_list, checked_text, invalid, shown


def read_texts(fields, name, settings):
    """The texts of a member, as strings and lists of token ids."""
    value = fields.require(name, "a text, token ids, or an array of them")
    if isinstance(value, str) or (isinstance(value, list) and value and _is_id(value[0])):
        return [_read_text(value, name, settings)]
    values = checked_list(value, name, settings.max_inputs, "texts")
    return [_read_text(text, f"{name}[{i}]", settings) for i, text in enumerate(values)]


def _read_text(value, path, settings):
    if isinstance(value, str):
        return checked_text(value, path)
    if isinstance(value, list):
        return _read_ids(value, path, settings)
    raise invalid(path, shown(value), "a text or token ids")


def _read_ids(value, path, settings):
    """The engine checks whether the model has them."""
    for id in checked_list(value, path, settings.max_body, "token ids"):
        if not _is_id(id) or not 0 <= id < 1 << 31:
            raise invalid(path, shown(id), "a token id")
    return value


def _is_id(value):
    return isinstance(value, int) and not isinstance(value, bool)
