"""Arguments of the calls: a choice of names, one text or several.

SPDX-License-Identifier: Apache-2.0
"""
from ._library import error, lib


def choose(table, name, value):
    if value not in table:
        expected = ", ".join(str(key) for key in table)
        raise error(f"{name}: found {value!r}, expected one of {expected}", lib.FT_EARG)
    return table[value]


def listed(texts):
    """A single text counts as a list of one."""
    return [texts] if isinstance(texts, str) else list(texts)
