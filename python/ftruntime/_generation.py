"""Text generation and beam search: requests, callbacks and streams.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from collections import namedtuple

from ._library import c_strings, call, error, ffi, lib
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import List, Optional

CHUNK = 512  # prompt tokens of a pass

# Parameters of generate() and their members of ft_request.
SAMPLING = ("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "min_p",
            "repetition_penalty", "presence_penalty", "frequency_penalty", "no_repeat_ngram",
            "seed")

EARLY_STOPPING = {
    False: lib.FT_EARLY_STOPPING_FALSE,
    True: lib.FT_EARLY_STOPPING_TRUE,
    "never": lib.FT_EARLY_STOPPING_NEVER,
}


class Generation(namedtuple("Generation", "text ids logprobs finish_reason")):
    """What a model has written for one prompt."""

    __slots__ = ()

    text: str
    ids: List[int]  # new tokens, including the stop token
    logprobs: List[float]  # log-softmax of the unmodified logits, of each new token
    finish_reason: str  # "stop_id", "stop_string", "length", "cancelled" or "failed"


class Token(namedtuple("Token", "request id text logprob finish_reason")):
    """A token of a stream."""

    __slots__ = ()

    request: int  # index of its prompt; of an engine the id of the request
    id: int  # -1 with finish_reason "failed"
    text: str  # new text, which is final; may be empty
    logprob: float
    finish_reason: Optional[str]  # of the last token of a prompt


class Hypothesis(namedtuple("Hypothesis", "text ids score finish_reason")):
    """A text that beam search has found."""

    __slots__ = ()

    text: str
    ids: List[int]  # new tokens, including the stop token
    score: float  # sum of log-probabilities / length^length_penalty
    finish_reason: str


class Requests:
    """An array of ft_request, with all that it points to."""

    def __init__(self, prompts, sources, sampling):
        count = len(prompts)
        self._kept = []
        self.count = count
        self.array = ffi.new("ft_request[]", count)
        stop_ids, stop = sampling.pop("stop_ids"), sampling.pop("stop")
        for i in range(count):
            request = self.array[i]
            for name in SAMPLING:
                setattr(request, name, sampling.get(name, 0))
            request.prompt, request.prompt_tokens = self._ids(prompts[i])
            if sources is not None:
                request.source, request.source_tokens = self._ids(sources[i])
            if stop_ids is not None:
                request.stop_ids, request.stops = self._ids(stop_ids)
            if stop:
                strings, kept = c_strings(stop)
                self._kept += [strings, kept]
                request.stop_strings = strings

    def _ids(self, ids):
        """An array and its length; NULL for None, and not NULL for an empty list."""
        if ids is None:
            return ffi.NULL, 0
        array = ffi.new("int32_t[]", list(ids) or 1)
        self._kept.append(array)
        return array, len(ids)


def token_of(token):
    """A Token from its structure in C."""
    text = ffi.buffer(token.text, token.text_bytes)[:].decode() if token.text_bytes else ""
    reason = None if token.reason == lib.FT_FINISH_NONE else reason_name(token.reason)
    return Token(token.request, token.id, text, token.logprob, reason)


def reason_name(reason):
    return ffi.string(lib.ft_finish_reason_name(reason)).decode()


SIZES = ("max_tokens", "max_sequences", "context", "cache_tokens", "source_tokens")


def take_session(model, requests, limits, beams=None):
    """A session of at least the size that ft-run chooses for these requests."""
    options = ffi.new("ft_session_options *")
    if beams is None:
        call(lib.ft_session_sizes_for_generation, options, model._model, requests.array,
             requests.count, limits)
    else:
        lib.ft_session_sizes_for_beam_search(options, model._model, requests.array, requests.count,
                                             beams, limits)
    sizes = {name: getattr(options, name) for name in SIZES if getattr(options, name) > 0}
    # Without max_new_tokens, the context is what ends a text.
    return model._sessions.take(model, sizes, () if requests.array[0].max_new_tokens else
                                ("context",))


class Callback:
    """A C callback that cancels all requests at its first exception."""

    def __init__(self, signature, function):
        self._failure = None

        def guarded(_, argument):
            return self._failure is None and bool(function(argument))

        def failed(_, failure, __):
            self._failure = failure

        self.pointer = ffi.callback(signature, guarded, error=False, onerror=failed)

    def raise_failure(self):
        """Raise that exception, once the call has returned."""
        if self._failure is not None:
            raise self._failure


def call_back(function, session, requests, options, callback):
    """ft_generate or ft_beam_search."""
    try:
        call(function, session._session, requests.array, requests.count, options,
             callback.pointer, ffi.NULL)
    finally:
        callback.raise_failure()


def run(model, tokenizer, requests, batch, chunk, on_token):
    """Generate; on_token gets each Token and returns whether its request goes on."""
    if requests.count == 0:
        return
    limits = ffi.new("ft_generation_limits *", {"batch": batch, "chunk": chunk})
    session = take_session(model, requests, limits)
    options = ffi.new("ft_generate_options *", {"chunk": chunk or CHUNK})
    if tokenizer is not None:
        options.tokenizer = tokenizer._tokenizer

    callback = Callback("bool(void *, const ft_token *)", lambda token: on_token(token_of(token)))
    call_back(lib.ft_generate, session, requests, options, callback)
    model._sessions.put(session)


def joined(tokens):
    """All tokens of a prompt as one Generation."""
    made = [token for token in tokens if token.id >= 0]
    return Generation("".join(token.text for token in tokens), [token.id for token in made],
                      [token.logprob for token in made], tokens[-1].finish_reason)


def collect(model, tokenizer, requests, batch, chunk):
    """The texts of all requests, in order."""
    found = [[] for _ in range(requests.count)]

    def on_token(token):
        found[token.request].append(token)
        return True

    run(model, tokenizer, requests, batch, chunk, on_token)
    return [joined(tokens) for tokens in found]


def stream(model, tokenizer, requests, batch, chunk):
    """Tokens as they come, from a thread; closing the iterator cancels all requests."""
    import queue
    import threading

    tokens, closed = queue.Queue(), threading.Event()

    def on_token(token):
        tokens.put(token)
        # The thread must not outlive the interpreter, which waits for it at exit.
        return not closed.is_set() and threading.main_thread().is_alive()

    def work():
        try:
            run(model, tokenizer, requests, batch, chunk, on_token)
            tokens.put(None)
        except BaseException as failure:  # the reader raises it
            tokens.put(failure)

    thread = threading.Thread(target=work, name="ftruntime.generate")
    thread.start()
    try:
        while True:
            token = tokens.get()
            if isinstance(token, BaseException):
                raise token
            if token is None:
                return
            yield token
    finally:
        closed.set()
        thread.join()


# ---- Beam search ------------------------------------------------------------------------------


def search(model, tokenizer, requests, batch, search_options, forced_bos):
    """The hypotheses of each request, best first."""
    found = [[] for _ in range(requests.count)]
    if requests.count == 0:
        return found
    first = ffi.new("int32_t *", forced_bos)
    options = ffi.new("ft_beam_search_options *", dict(search_options, forced_bos=first))
    limits = ffi.new("ft_generation_limits *", {"batch": batch})
    session = take_session(model, requests, limits, beams=search_options["beams"])

    def add(hypothesis):
        ids = ffi.unpack(hypothesis.ids, hypothesis.tokens) if hypothesis.tokens else []
        found[hypothesis.request].append(
            (ids, hypothesis.score, reason_name(hypothesis.reason)))
        return True

    callback = Callback("bool(void *, const ft_hypothesis *)", add)
    call_back(lib.ft_beam_search, session, requests, options, callback)
    model._sessions.put(session)
    return [[Hypothesis(tokenizer.decode(ids), ids, score, reason) for ids, score, reason in texts]
            for texts in found]


# ---- Translators ------------------------------------------------------------------------------


class Translator:
    """The tokenizers for a pair of languages, and the first token of a translation."""

    def __init__(self, model, source, target):
        self._names = [ffi.NULL if name is None else ffi.new("char[]", name.encode())
                       for name in (source, target)]
        pair = ffi.new("ft_language_pair *", {"source": self._names[0], "target": self._names[1],
                                              "requires_target": True})
        translator = ffi.new("ft_translator *")
        call(lib.ft_translator_open_model, translator, model._model, pair)
        self._translator = ffi.gc(translator, lib.ft_translator_close)
        self.first_id = lib.ft_translator_first_token(translator, model._model)
        self.source = _Borrowed(translator.source, self._translator)
        self.target = _Borrowed(translator.target, self._translator)

    def encode(self, text):
        data = text.encode()
        row = self.source._encode(data, None, True, 0)
        return ffi.unpack(row.ids, row.count) if row.count else []


class _Borrowed(Tokenizer):
    """A tokenizer that its translator closes, with the last reference to it."""

    def __init__(self, pointer, owner):
        self._tokenizer = pointer
        self._owner = owner


def early_stopping(value):
    if value not in EARLY_STOPPING:
        raise error(f'early_stopping: found {value!r}, expected False, True or "never"',
                    lib.FT_EARG)
    return EARLY_STOPPING[value]
