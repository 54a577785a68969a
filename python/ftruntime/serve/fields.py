"""The members of a request, with strict types.

Each getter takes a member out; what is left in the end is unknown and refused, because it might
change what the client expects.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import json

from .body import kind
from .errors import ApiError


def shown(value):
    """A value as it may stand in a message."""
    if isinstance(value, (list, dict)):
        return kind(value)
    if isinstance(value, str):
        return json.dumps(value[:40])
    return json.dumps(value)[:40]


def invalid(param, found, expected):
    return ApiError(400, f"{param}: found {found}, expected {expected}", param, "invalid_value")


class Fields:
    """An object whose members are taken out one by one; null is the same as none."""

    def __init__(self, values, name=""):
        self._name = name
        self._left = {key: value for key, value in values.items() if value is not None}

    def path(self, name):
        return f"{self._name}.{name}" if self._name else name

    def of(self, values, name):
        """The members of an object inside this one."""
        return Fields(values, self.path(name))

    def take(self, name):
        return self._left.pop(name, None)

    def require(self, name, expected):
        """A member that must be there."""
        if name not in self._left:
            raise ApiError(400, f"{self.path(name)}: found nothing, expected {expected}",
                           self.path(name), "missing_required_parameter")
        return self.take(name)

    # ---- Types ---------------------------------------------------------------------------------

    def boolean(self, name, default=False):
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise invalid(self.path(name), shown(value), "true or false")
        return value

    def integer(self, name, low, high, default):
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise invalid(self.path(name), shown(value), f"an integer from {low} to {high}")
        return value

    def number(self, name, low, high, default):
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) \
                or not low <= value <= high:
            raise invalid(self.path(name), shown(value), f"a number from {low} to {high}")
        return float(value)

    def text(self, name, default=None):
        value = self.take(name)
        return default if value is None else checked_text(value, self.path(name))

    def choice(self, name, values, default):
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, str) or value not in values:
            raise invalid(self.path(name), shown(value), " or ".join(f'"{v}"' for v in values))
        return value

    def texts(self, name, most, default=()):
        """A string, or an array of at most so many strings, none of them empty."""
        value = self.take(name)
        if value is None:
            return list(default)
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or len(values) > most or not all(
                isinstance(text, str) and text for text in values):
            raise invalid(self.path(name), shown(value),
                          f"a string or an array of at most {most} strings, none of them empty")
        return [checked_text(text, self.path(name)) for text in values]

    # ---- What is not computed ------------------------------------------------------------------

    def ignore(self, *names):
        """Members that change no result."""
        for name in names:
            self.take(name)

    def neutral(self, name, *values):
        """A member that is not supported, unless it has a value that changes nothing."""
        value = self.take(name)
        if value is not None and not any(type(value) is type(v) and value == v for v in values):
            raise ApiError(400, f"{self.path(name)} is not supported", self.path(name),
                           "unsupported_parameter")

    def finish(self):
        """Refuse what is left."""
        for name in self._left:
            shown_name = self.path(ascii(name)[1:-1][:80])
            raise ApiError(400, f"{shown_name} is not known", shown_name, "unknown_parameter")


def checked_text(value, param):
    """A string that UTF-8 can encode, without NUL, which ends strings in C."""
    if not isinstance(value, str):
        raise invalid(param, shown(value), "a string")
    if "\0" in value:
        raise invalid(param, "a NUL character", "a text without one")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(param, "half of a surrogate pair", "Unicode text") from None
    return value


def checked_list(value, param, most, what):
    """A non-empty array with at most so many elements."""
    if not isinstance(value, list) or not value:
        found = "an empty array" if isinstance(value, list) else shown(value)
        raise invalid(param, found, f"an array of {what}")
    if len(value) > most:
        raise ApiError(413, f"{param}: found {len(value)} {what}, expected at most {most}", param,
                       "too_many")
    return value
