"""Engines: requests as they come, from any thread or from asyncio, run together.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import namedtuple

from . import _rows, _tasks
from ._arrays import as_array, numpy, tensor_of
from ._callbacks import Job
from ._generation import Generation, joined
from ._library import FtError, c_strings, call, error, ffi, lib
from ._streams import Stream, call_soon, settle

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence,
                        Set, Tuple, Union)

    import numpy as np

    from ._generation import Token
    from ._tasks import Prediction
    from .model import Model

    Prompt = Union[str, Sequence[int]]
    OnEnd = Callable[[Optional[BaseException]], None]

_OPEN: "weakref.WeakSet[Engine]" = weakref.WeakSet()
_BUSY: "Set[Engine]" = set()  # have requests, and so stay open without a reference


# Callbacks must not come while the interpreter ends.
@atexit.register
def _close_all():
    for engine in list(_OPEN):
        engine.close()


def _forget_all():
    """A child has the memory of its parent's engines, but not their threads."""
    for engine in list(_OPEN):
        engine._forget()


os.register_at_fork(after_in_child=_forget_all)

SIZES = ("threads", "max_sequences", "chunk", "context", "cache_tokens", "source_tokens", "queue",
         "batch_wait")


class EngineStats(namedtuple("EngineStats", "queued running finished cancelled timed_out failed "
                             "prompt_tokens decode_tokens prefix_tokens passes free_pages pages")):
    """What an engine does and has done."""

    __slots__ = ()

    queued: int  # requests, now
    running: int
    finished: int  # requests, so far
    cancelled: int
    timed_out: int
    failed: int
    prompt_tokens: int  # computed of prompts or inputs
    decode_tokens: int  # computed by decode steps
    prefix_tokens: int  # of prompts: in the prefix cache, so not computed
    passes: int  # forward passes
    free_pages: int  # of the KV cache: 64 tokens each
    pages: int


class Engine:
    """Runs the requests of many threads or tasks together; made by Model.engine().

    A request gets the result that it has alone, bit for bit.  All methods may be called from any
    thread.  close(), the end of a `with` block and the end of the program cancel what runs.
    """

    def __init__(self, model: "Model", *, prefix_cache: bool = True, **sizes: int):
        """Open an engine.

        Args:
            prefix_cache: keep what prompts have in common at their beginning.
            sizes: threads, context, source_tokens as of Session; max_sequences that run at the
                same time (64); chunk: tokens of a forward pass (512, of encoders 4096);
                cache_tokens of the KV cache; queue: most requests that wait (1024); batch_wait:
                microseconds that a batch of an encoder waits for more rows (0).

        Raises:
            FtError: FT_EARG, FT_ELIMIT, FT_ENOMEM.
        """
        unknown = set(sizes) - set(SIZES)
        if unknown:
            raise TypeError(f"unexpected argument {sorted(unknown)[0]!r}")
        self.model = model
        self._forget()
        self._tokenizer = _tokenizer_of(model)
        self._rows = sizes.get("max_sequences") or _rows.ENGINE_ROWS
        self._tokens = max(sizes.get("chunk") or _rows.MAX_TOKENS, self._rows)
        options = ffi.new("ft_engine_options *", dict(sizes, no_prefix_cache=not prefix_cache))
        options.threads = options.threads or model._threads
        if self._tokenizer is not None:
            options.tokenizer = self._tokenizer._tokenizer
        out = ffi.new("ft_engine **")
        call(lib.ft_engine_open, out, model._model, options)
        self._engine = out[0]
        _OPEN.add(self)

    # ---- Requests with callbacks ---------------------------------------------------------------

    def submit(self, prompt: Prompt, on_token: "Optional[Callable[[Token], Optional[bool]]]" = None,
               on_end: Optional[OnEnd] = None, *, priority: int = 0,
               timeout: Optional[float] = None, stop: Sequence[str] = (),
               stop_ids: Optional[Sequence[int]] = None, **sampling: Any) -> int:
        """Let a prompt wait for its turn, and return the id of the request.

        Callbacks come from the engine's thread, one at a time, and one that takes long delays all
        requests.

        Args:
            prompt: a text or token ids.
            on_token: called with each token; False or an exception cancels the request.
            on_end: called once, and last, with None or the exception that ended the request:
                FtError FT_ECANCELLED, FT_ETIMEOUT, FT_ENONFINITE, or that of a callback.
            priority: requests with a higher one start earlier.
            timeout: seconds from now, after which the request ends; default: none.
            stop, stop_ids, sampling: as of Model.generate().

        Raises:
            FtError: FT_ELIMIT while the queue is full, and for a request that exceeds a limit of
                the engine; FT_EARG, FT_EUNSUPPORTED.
        """
        self.model._require_decoder()
        requests = self.model._requests([self.model._prompt_ids(prompt)], None, stop, stop_ids,
                                        sampling)
        request = ffi.new("ft_engine_request *", {"generate": requests.array})
        return self._submit(request, Job(on_token=on_token), on_end, priority, timeout)

    def submit_arrays(self, inputs: Mapping[str, Any], outputs: Iterable[str],
                      on_outputs: "Callable[[Dict[str, np.ndarray]], None]",
                      on_end: Optional[OnEnd] = None, *, priority: int = 0,
                      timeout: Optional[float] = None) -> int:
        """Let a forward pass wait for its turn, of an encoder or an embedding model.

        Args:
            inputs, outputs: as of Session.run().
            on_outputs: called with the arrays by name.
            on_end, priority, timeout: as of submit().
        """
        arrays = {name: as_array(values, name) for name, values in inputs.items()}
        keys = [ffi.new("char[]", name.encode()) for name in arrays]
        tensors = ffi.new("ft_engine_tensor[]", len(arrays))
        for tensor, key, array in zip(tensors, keys, arrays.values()):
            tensor.name, tensor.tensor = key, tensor_of(array)[0]
        names, _kept = c_strings(list(outputs))
        request = ffi.new("ft_engine_request *", {"inputs": tensors, "num_inputs": len(arrays),
                                                  "outputs": names})
        return self._submit(request, Job(on_outputs=on_outputs), on_end, priority, timeout)

    def _submit(self, request, job, on_end, priority, timeout):
        """Submit a request, which the library copies."""
        if timeout is not None and timeout <= 0:
            raise error(f"timeout: found {timeout} s, expected more than 0", lib.FT_EARG)

        def ended(failure):
            try:
                if on_end is not None:
                    on_end(failure)
            finally:
                with self._lock:
                    self._remove(job)

        job.engine, job.on_end = self, ended
        job.attach(request)
        request.priority, request.timeout = priority, timeout or 0.0
        id = ffi.new("uint64_t *")
        with self._lock:
            self._require_open()
            self._jobs.add(job)
            _BUSY.add(self)
            try:
                call(lib.ft_engine_submit, self._engine, request, id)
            except BaseException:
                self._remove(job)
                job.release()
                raise
        return id[0]

    def _remove(self, job):
        self._jobs.discard(job)
        if not self._jobs:
            _BUSY.discard(self)
            self._idle.notify_all()

    def _require_open(self):
        if self._engine is None:
            raise error("the engine is closed", lib.FT_EARG)

    def cancel(self, id: int) -> None:
        """End a request before the next forward pass, unless it has ended."""
        with self._lock:
            if self._engine is not None:
                lib.ft_engine_cancel(self._engine, id)

    # ---- Without asyncio -----------------------------------------------------------------------

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Token]:
        """Tokens as they come; closing the iterator cancels the request.

        Args:
            prompt, options: as of submit(), which this calls at once.
        """
        import queue

        tokens = queue.SimpleQueue()

        def end(failure):
            tokens.put(failure)

        id = self.submit(prompt, tokens.put, end, **options)
        return self._read(id, tokens)

    def _read(self, id, tokens):
        try:
            while True:
                token = tokens.get()
                if token is None:
                    return
                if isinstance(token, BaseException):
                    raise token
                yield token
        finally:
            self.cancel(id)

    # ---- For asyncio ---------------------------------------------------------------------------

    def generate(self, prompt: Prompt, *, most_unread: int = 0, **options: Any) -> Stream:
        """Tokens as they come, for `async for`; dropping the stream cancels the request.

        Args:
            prompt, options: as of submit(), which this calls at once.
            most_unread: tokens that may wait for the reader; with more, the request is cancelled
                and the stream raises FT_ECANCELLED.  Default: no limit.
        """
        import asyncio

        stream = Stream(self, asyncio.get_running_loop(), most_unread)
        on_token, on_end = _without_keeping(stream)
        stream.id = self.submit(prompt, on_token, on_end, **options)
        return stream

    async def complete(self, prompt: Prompt, **options: Any) -> Generation:
        """All tokens at once, which costs less than a stream.

        Args:
            prompt, options: as of submit().
        """
        import asyncio

        future, tokens = asyncio.get_running_loop().create_future(), []
        id = self.submit(prompt, tokens.append, _settling(future, tokens), **options)
        return joined(await self._ended(id, future))

    async def forward(self, inputs: Mapping[str, Any], outputs: Iterable[str] = ("logits",),
                      **options: Any) -> Dict[str, "np.ndarray"]:
        """A forward pass of an encoder or an embedding model, in a batch with others.

        Args:
            inputs, outputs: as of Session.run().
            options: priority and timeout, as of submit().
        """
        import asyncio

        future, found = asyncio.get_running_loop().create_future(), {}
        id = self.submit_arrays(inputs, outputs, found.update, _settling(future, found), **options)
        return await self._ended(id, future)

    async def _ended(self, id, future):
        """Wait for the end of a request, which ends with its task."""
        try:
            return await future
        finally:
            self.cancel(id)

    async def embed(self, texts: Union[str, Iterable[str]], prompt: Optional[str] = None,
                    dim: Optional[int] = None, truncate: bool = False, max_length: int = 0,
                    **options: Any) -> "np.ndarray":
        """Embed texts: Model.embed(), in batches with other requests.

        Args:
            options: priority and timeout, as of submit().
        """
        rows = self.model._embedding_rows(texts, prompt, truncate, max_length)
        return await self.embed_rows(rows, dim, **options)

    async def embed_rows(self, rows, dim=None, **options):
        """Embed encoded texts."""
        parts = [outputs["embedding"]
                 async for outputs in self._forward_rows(rows, ["embedding"], options)]
        return self.model._embeddings(parts, dim)

    async def classify(self, texts: "Iterable[Union[str, Tuple[str, str]]]",
                       truncate: bool = False, max_length: int = 0,
                       **options: Any) -> List[Prediction]:
        """Classify texts or pairs: Model.classify(), in batches with other requests.

        Args:
            options: priority and timeout, as of submit().
        """
        rows = self.model._class_rows(texts, truncate, max_length)
        return await self.classify_rows(rows, **options)

    async def classify_rows(self, rows, **options):
        """Classify encoded texts."""
        found = []
        async for outputs in self._forward_rows(rows, ["logits"], options):
            found += [_tasks.prediction(self.model, row) for row in outputs["logits"]]
        return found

    async def rerank(self, query: str, texts: Iterable[str], truncate: bool = False,
                     max_length: int = 0, **options: Any) -> "np.ndarray":
        """Scores of texts for a query: Model.rerank(), in batches with other requests.

        Args:
            options: priority and timeout, as of submit().
        """
        found = await self.classify([(query, text) for text in texts], truncate, max_length,
                                    **options)
        return numpy().array([prediction.probabilities[-1] for prediction in found], "float64")

    async def _forward_rows(self, rows, names, options):
        """The outputs of all rows, one batch after the other."""
        has_types = self.model.config.get("types", 0) > 0
        for first, end in _rows.batches(rows, self._tokens, self._rows):
            yield await self.forward(_rows.padded(rows[first:end], has_types), names, **options)

    # ---- State ---------------------------------------------------------------------------------

    def stats(self) -> EngineStats:
        """What the engine has done so far; tokens and pages after its last forward pass."""
        found = ffi.new("ft_engine_stats *")
        with self._lock:
            self._require_open()
            call(lib.ft_engine_get_stats, self._engine, found)
        return EngineStats(*(getattr(found, name) for name in EngineStats._fields))

    def drain(self, timeout: Optional[float] = None) -> bool:
        """Wait until every request has ended; False: not within so many seconds.

        Raises:
            FtError: FT_EARG in a callback of the engine.
        """
        self._require_no_callback("wait for")
        with self._lock:
            drained = self._idle.wait_for(lambda: not self._jobs, timeout)
            if drained and self._engine is not None:
                # The last callback has come, and the library is about to count its request.
                call(lib.ft_engine_drain, self._engine)
            return drained

    def close(self) -> None:
        """Cancel what is left, with its callbacks, and free the engine.

        Raises:
            FtError: FT_EARG in a callback of the engine.
        """
        self._require_no_callback("close")
        pointer = self._take()
        if pointer is not None:
            lib.ft_engine_close(pointer, ffi.NULL)

    def _take(self):
        """The engine in C, which nobody else uses from now on; None: it is closed."""
        with self._lock:
            pointer, self._engine = self._engine, None
        _OPEN.discard(self)
        return pointer

    def _require_no_callback(self, what):
        if threading.get_ident() == self._thread:
            raise error(f"a callback of an engine cannot {what} it", lib.FT_EARG)

    def _forget(self):
        """Become an engine that is closed."""
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)
        self._jobs = set()
        self._engine = self._thread = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self):
        pointer = self._take() if hasattr(self, "_engine") else None
        if pointer is None:
            return
        if threading.get_ident() != self._thread:
            lib.ft_engine_close(pointer, ffi.NULL)
        else:  # the last callback of its last request has dropped it
            threading.Thread(target=lib.ft_engine_close, args=(pointer, ffi.NULL)).start()


def _tokenizer_of(model):
    try:
        return model.tokenizer
    except FtError as failure:
        if failure.code != lib.FT_EUNSUPPORTED:
            raise
        return None


def _settling(future, result):
    """The function for the end of a request that gives a future its result."""
    loop = future.get_loop()
    return lambda failure: call_soon(loop, settle, future, result, failure)


def _without_keeping(stream):
    """Its two functions for the engine's thread; the stream may be dropped meanwhile."""
    reference = weakref.ref(stream)

    def on_token(token):
        found = reference()
        return found is not None and found.put(token)

    def on_end(failure):
        found = reference()
        if found is not None:
            found.end(failure)

    return on_token, on_end
