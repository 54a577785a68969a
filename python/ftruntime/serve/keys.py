"""API keys.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import hmac

from .errors import ApiError


def require_key(headers, keys):
    """401 unless a request has one of the keys.  All are compared, in constant time each."""
    if not keys:
        return
    scheme, _, found = headers.get("authorization", "").partition(" ")
    given = found.strip().encode("latin-1")
    matches = 0
    for key in keys:
        matches |= hmac.compare_digest(given, key.encode())
    if not matches or scheme.lower() != "bearer":
        raise ApiError(401, "Authorization: found no valid key, expected Bearer and an API key",
                       code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
