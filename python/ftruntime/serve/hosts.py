"""Who may be called by which name, and from which pages.

A browser lets any page send requests to any address.  The name in Host shows that a page has made
a foreign name point here; Origin shows where a page is from.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from .errors import ApiError


def address_of(name):
    """The IP address that a name is written as, or None."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def is_loopback(host):
    """Whether only this machine reaches a server that is bound to a host."""
    address = address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _split(authority):
    """The name, in lower case, of name:port; None if it is malformed."""
    try:
        parts = urlsplit("//" + authority)
        parts.port  # raises for a malformed one
    except ValueError:
        return None
    malformed = parts.path or parts.query or parts.fragment or "@" in authority
    return None if malformed else parts.hostname


def _is_ours(name, settings):
    if name is None:
        return False
    names = {allowed.lower() for allowed in settings.allow_hosts}
    if "*" in names or name in names or name in ("localhost", settings.host.lower()):
        return True
    address = address_of(name)
    if address is None:
        return False
    # An address cannot be made to point elsewhere, and a wildcard has all of this machine.
    bound = address_of(settings.host)
    return address.is_loopback or (bound is not None and bound.is_unspecified)


def require_host(headers, settings):
    """403 unless a request names this server."""
    found = headers.getlist("host")
    if len(found) != 1 or not _is_ours(_split(found[0]), settings):
        raise ApiError(403, "Host: found a name of another server, expected localhost, its "
                       "address, or a name given with --allow-host", code="host_not_allowed")


def allowed_origin(headers, settings):
    """The origin of a page elsewhere that may call, or None: there is none, or it is ours.

    403 for other origins.
    """
    found = headers.get("origin")
    if found is None:
        return None
    if found in settings.allow_origins:
        return found
    if found != "null" and urlsplit(found).netloc.lower() == headers.get("host", "").lower():
        return None
    raise ApiError(403, "Origin: found a page of another server, expected one given with "
                   "--allow-origin", code="origin_not_allowed")
