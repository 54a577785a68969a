"""Errors as OpenAI's API returns them.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from starlette.responses import JSONResponse

from .._library import FtError

TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
}

# Statuses of the library that are not the fault of a request.
STATUSES = {
    "FT_ETIMEOUT": 408,
    "FT_ECANCELLED": 503,
    "FT_ENOMEM": 503,
    "FT_ENONFINITE": 500,
    "FT_EDEVICE": 500,
    "FT_EIO": 500,
}


class ApiError(Exception):
    """A request has failed.  The message says what was found and what was expected."""

    def __init__(self, status, message, param=None, code=None, headers=None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers or {}

    def body(self):
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": TYPES.get(self.status, kind),
                          "param": self.param, "code": self.code}}

    def response(self):
        return JSONResponse(self.body(), self.status, self.headers)


def api_error(failure: Exception, models) -> ApiError:
    """What a client is told of a failure: not the paths of models, nor what it has not caused."""
    if isinstance(failure, ApiError):
        return failure
    if not isinstance(failure, FtError):
        return ApiError(500, "the server has failed", code="internal_error")
    message = str(failure)
    for served in models:
        message = message.replace(served.model.path, served.name)
    code = {"FT_ELIMIT": "context_length_exceeded", "FT_ETIMEOUT": "timeout"}.get(failure.status)
    return ApiError(STATUSES.get(failure.status, 400), message, code=code)
