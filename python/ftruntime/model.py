"""Models: texts and arrays in, classes, embeddings, texts and arrays out.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import os
from functools import cached_property

from . import _chat, _generation
from ._arguments import choose, listed
from ._encoder_calls import EncoderCalls
from ._generation import Generation, Hypothesis, Token
from ._library import (LIBRARY, OWN_LIBRARY, FtError, call, error, ffi, lib,
                       text_or_none)
from ._session_pool import SessionPool
from .session import Session
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

    from .engine import Engine

VERIFY = {
    "structure": lib.FT_VERIFY_STRUCTURE,
    "crc": lib.FT_VERIFY_CRC,
    "sha256": lib.FT_VERIFY_SHA256,
}

KV = {
    None: lib.FT_KV_DTYPE_AUTO,
    "f16": lib.FT_KV_DTYPE_F16,
    "int8": lib.FT_KV_DTYPE_INT8,
}


def _with_hint(failure, device):
    """The library suggests to build it with CUDA; a wheel has that."""
    if failure.code != lib.FT_EDEVICE or not device.startswith("cuda") or LIBRARY != OWN_LIBRARY:
        return failure
    return error(f"{failure}; or install ftruntime-cu13", failure.code)


class Model(EncoderCalls):
    """An artifact, mapped into memory.  Many threads may use it at the same time."""

    def __init__(self, pointer, path: str, threads: int):
        self._model = pointer
        self._threads = threads
        self._info = lib.ft_model_get_info(pointer)
        self._generates = lib.ft_model_generates(pointer)
        self._sessions = SessionPool()
        self.path = path

    @classmethod
    def open(cls, path: "Union[str, os.PathLike]", device: str = "cpu",
             threads: Optional[int] = None, verify: str = "structure", kv: Optional[str] = None,
             embed: bool = False) -> "Model":
        """Memory-map an artifact, verify it and plan its execution.

        Args:
            device: "cpu" or "cuda:N".
            threads: of each session; default: the processors that affinity and CPU quota allow.
            verify: "structure", "crc" or "sha256": how thoroughly the file is checked.
            kv: dtype of the KV cache, "f16" or "int8"; default: that of the attention inputs.
            embed: open a decoder for embed() instead of generate().

        Raises:
            FtError: FT_EIO, FT_EFORMAT, FT_EUNSUPPORTED; FT_EDEVICE for a device that this
                machine or build does not have.
        """
        device_name = ffi.new("char[]", device.encode())
        options = ffi.new("ft_model_options *", {"device": device_name,
                                                 "verify": choose(VERIFY, "verify", verify),
                                                 "kv": choose(KV, "kv", kv)})
        function = lib.ft_model_open_for_embedding if embed else lib.ft_model_open
        out = ffi.new("ft_model **")
        try:
            call(function, out, os.fsencode(path), options)
        except FtError as failure:
            raise _with_hint(failure, device) from None
        return cls(ffi.gc(out[0], lib.ft_model_close), os.fspath(path), threads or 0)

    # ---- Properties ----------------------------------------------------------------------------

    @property
    def family(self) -> str:
        """The family of architectures: "bert", "llama", "m2m100", "vit"."""
        return ffi.string(self._info.family).decode()

    @property
    def precision(self) -> str:
        """"float", "groupwise" or "int8"."""
        return ffi.string(self._info.precision).decode()

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self._info.layers

    @property
    def hidden(self) -> int:
        """Columns of the hidden states."""
        return self._info.hidden

    @property
    def vocabulary(self) -> int:
        """Rows of the word embeddings."""
        return self._info.vocabulary

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        return self._info.max_positions

    @property
    def max_seq_length(self) -> int:
        """Tokens to which truncate=True truncates; at most max_positions."""
        return self._info.max_seq_length

    @property
    def labels(self) -> List[str]:
        """Names of the labels by index; empty without a classification head."""
        return [self.label(i) for i in range(self._info.labels)]

    @property
    def problem_type(self) -> Optional[str]:
        """"single_label_classification", "multi_label_classification", "regression" or None."""
        return text_or_none(self._info.problem_type)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all tensors in the file."""
        return self._info.weight_bytes

    @cached_property
    def config(self) -> Dict[str, Any]:
        """The member "config" of the artifact's manifest, which ft-artifact(5) describes."""
        import json
        import zipfile

        with zipfile.ZipFile(self.path) as artifact:
            return json.loads(artifact.read("manifest.json"))["config"]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer inside the model.  FtError FT_EUNSUPPORTED if it has none."""
        return Tokenizer(self)

    def label(self, index: int) -> str:
        """The name of a label, or "LABEL_<index>" if it has none."""
        return text_or_none(lib.ft_model_label(self._model, index)) or f"LABEL_{index}"

    # ---- Arrays --------------------------------------------------------------------------------

    def session(self, **options: Any) -> Session:
        """Memory for forward passes from arrays to arrays; the arguments are those of Session."""
        return Session(self, **options)

    def engine(self, **options: Any) -> "Engine":
        """A thread that runs requests together as they come; the arguments are those of Engine."""
        from .engine import Engine

        return Engine(self, **options)

    # ---- Text generation -----------------------------------------------------------------------

    def generate(self, prompts: "Union[str, Iterable[Union[str, Sequence[int]]]]",
                 stream: bool = False, *, stop: Sequence[str] = (),
                 stop_ids: Optional[Sequence[int]] = None, batch: int = 0, chunk: int = 0,
                 **sampling: Any) -> "Union[List[Generation], Iterator[Token]]":
        """Continue prompts, texts or lists of token ids, with continuous batching.

        Args:
            prompts: without a tokenizer in the model only token ids, which give no text.
            stream: return an iterator of tokens of all prompts; closing it cancels them.
            stop: strings that end a text and are not part of it.
            stop_ids: tokens that end a text; default: eos_token_id of the model.
            batch: concurrent sequences; default 64.
            chunk: prompt tokens of a forward pass; default 512.
            sampling: max_new_tokens, min_new_tokens, temperature (default 0: greedy), top_k,
                top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty,
                no_repeat_ngram, seed; ft.h describes them.

        Raises:
            FtError: FT_EUNSUPPORTED for other models; FT_EARG, FT_ELIMIT for invalid requests;
                FT_ENONFINITE if a sequence has failed.
        """
        self._require_decoder()
        prompts = listed(prompts)
        tokenizer = self._tokenizer_for(prompts, stop)
        ids = [self._prompt_ids(prompt) for prompt in prompts]
        return self._generate(tokenizer, ids, stream, stop, stop_ids, batch, chunk, sampling)

    def chat(self, messages: Sequence[Mapping[str, str]], stream: bool = False, *, date: int = 0,
             stop: Sequence[str] = (), stop_ids: Optional[Sequence[int]] = None, chunk: int = 0,
             **sampling: Any) -> "Union[Generation, Iterator[Token]]":
        """Continue a conversation by the model's chat template.

        Args:
            messages: {"role": "system", "user" or "assistant", "content": text} each.
            date: for templates with a date: seconds since 1970; default: now.
            stream, stop, stop_ids, chunk, sampling: as of generate().

        Raises:
            FtError: as generate(); FT_EUNSUPPORTED without a chat template.
        """
        self._require_decoder()
        ids = _chat.encode(self._chat_template, self.tokenizer, list(messages), date, True)
        found = self._generate(self.tokenizer, [ids], stream, stop, stop_ids, 1, chunk, sampling)
        return found if stream else found[0]

    @cached_property
    def _chat_template(self):
        return _chat.open_template(self)

    def _require_decoder(self):
        if not self._generates or "encoder_layers" in self.config:
            raise error(f"{self.path}: found a model of family {self.family}, expected a decoder",
                        lib.FT_EUNSUPPORTED)

    def _tokenizer_for(self, prompts, stop):
        """The tokenizer; None if the model has none and there are only token ids."""
        try:
            return self.tokenizer
        except FtError as failure:
            needed = stop or any(isinstance(prompt, str) for prompt in prompts)
            if needed or failure.code != lib.FT_EUNSUPPORTED:
                raise
            return None

    def _prompt_ids(self, prompt):
        if not isinstance(prompt, str):
            return [int(id) for id in prompt]
        row = self.tokenizer._encode(prompt.encode(), None, True, 0)
        return ffi.unpack(row.ids, row.count) if row.count else []

    def _generate(self, tokenizer, prompts, stream, stop, stop_ids, batch, chunk, sampling):
        requests = self._requests(prompts, None, stop, stop_ids, sampling)
        function = _generation.stream if stream else _generation.collect
        return function(self, tokenizer, requests, batch, chunk)

    def _requests(self, prompts, sources, stop, stop_ids, sampling):
        unknown = set(sampling) - set(_generation.SAMPLING)
        if unknown:
            raise TypeError(f"unexpected argument {sorted(unknown)[0]!r}")
        return _generation.Requests(prompts, sources, dict(sampling, stop=stop, stop_ids=stop_ids))

    # ---- Translation ---------------------------------------------------------------------------

    def translate(self, texts: "Union[str, Iterable[Union[str, Sequence[int]]]]",
                  source_lang: Optional[str] = None, target_lang: Optional[str] = None,
                  stream: bool = False, *, beams: int = 0, n_best: int = 1,
                  length_penalty: float = 1.0, early_stopping: "Union[bool, str]" = False,
                  beam_groups: int = 0, diversity_penalty: float = 0.0,
                  stop_ids: Optional[Sequence[int]] = None, batch: int = 0, **sampling: Any
                  ) -> "Union[List[Generation], Iterator[Token], List[List[Hypothesis]]]":
        """Translate texts, or lists of source token ids, by an encoder-decoder.

        Args:
            source_lang, target_lang: names of languages, where the model has them.
            stream: as of generate(); not with beams.
            beams: beam search with so many beams; default 0: greedy, or by the sampling
                parameters of generate().
            n_best: hypotheses of each text.
            length_penalty, early_stopping, beam_groups, diversity_penalty: as in transformers.

        Returns:
            Without beams a Generation of each text, with beams a list of its hypotheses, best
            first; an empty list if there is none.

        Raises:
            FtError: FT_EUNSUPPORTED for other models; FT_EARG for an unknown language.
        """
        if "encoder_layers" not in self.config:
            raise error(f"{self.path}: found a model of family {self.family}, expected an "
                        "encoder-decoder", lib.FT_EUNSUPPORTED)
        if stream and beams > 0:
            raise error(f"stream: found True with {beams} beams, expected False", lib.FT_EARG)
        translator = _generation.Translator(self, source_lang, target_lang)
        sources = [translator.encode(text) if isinstance(text, str) else [int(id) for id in text]
                   for text in listed(texts)]
        if beams == 0:
            begin = [self.config["start_id"]] + [translator.first_id] * (translator.first_id >= 0)
            requests = self._requests([begin] * len(sources), sources, (), stop_ids, sampling)
            function = _generation.stream if stream else _generation.collect
            return function(self, translator.target, requests, batch, 0)
        requests = self._requests([None] * len(sources), sources, (), stop_ids, sampling)
        options = {
            "beams": beams,
            "n_best": n_best,
            "length_penalty": length_penalty,
            "no_length_normalization": length_penalty == 0,
            "early_stopping": _generation.early_stopping(early_stopping),
            "beam_groups": beam_groups,
            "diversity_penalty": diversity_penalty,
        }
        return _generation.search(self, translator.target, requests, batch, options,
                                  translator.first_id)
