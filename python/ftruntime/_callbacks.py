"""Callbacks of engines: from the engine's thread, in C, to the functions of a request.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from threading import get_ident

from ._arrays import numpy, shape_of
from ._generation import token_of
from ._library import error, ffi


class Job:
    """A request that an engine has not ended.

    Its functions are called in the engine's thread.  The first exception of one of them cancels
    the request, which then ends with this exception.
    """

    def __init__(self, on_token=None, on_outputs=None, on_end=None):
        self.engine = None
        self.failure = None
        self.on_token = on_token
        self.on_outputs = on_outputs
        self.on_end = on_end
        self.handle = ffi.new_handle(self)

    def release(self):
        """No callback comes any more: drop what would keep this job, and its engine, as a cycle."""
        self.engine = self.on_token = self.on_outputs = self.on_end = self.handle = None

    def enter(self):
        """A callback begins: the engine knows its thread from now on."""
        self.engine._thread = get_ident()

    def attach(self, request):
        """Make a request in C call this job."""
        request.on_token = on_token
        request.on_outputs = on_outputs
        request.on_end = on_end
        request.user = self.handle


@ffi.callback("bool(void *, const ft_token *)", error=False)
def on_token(user, token):
    job = ffi.from_handle(user)
    job.enter()
    try:
        return job.on_token is None or job.on_token(token_of(token)) is not False
    except BaseException as failure:  # the request ends with it
        job.failure = failure
        return False


@ffi.callback("void(void *, uint64_t, const ft_engine_tensor *, size_t)")
def on_outputs(user, _, outputs, count):
    job = ffi.from_handle(user)
    job.enter()
    try:
        job.on_outputs({ffi.string(output.name).decode(): _copy(output.tensor)
                        for output in outputs[0:count]})
    except BaseException as failure:
        job.failure = failure


@ffi.callback("void(void *, uint64_t, ft_status, const ft_error *)")
def on_end(user, _, status, err):
    job = ffi.from_handle(user)
    job.enter()
    failure = job.failure
    if failure is None and status:
        failure = error(ffi.string(err.text).decode("utf-8", "replace"), status)
    try:
        job.on_end(failure)
    finally:
        job.release()


def _copy(tensor):
    np = numpy()
    shape = shape_of(tensor)
    size = 4 * int(np.prod(shape, dtype="int64"))
    return np.frombuffer(ffi.buffer(tensor.data, size), "float32").reshape(shape).copy()
