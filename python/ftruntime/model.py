"""Models: texts and arrays in, classes, embeddings, texts and arrays out.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import os
from functools import cached_property

from . import _chat, _generation, _images, _rows, _tasks
from ._arrays import numpy
from ._generation import Generation, Hypothesis, Token
from ._library import FtError, call, error, ffi, lib, text_or_none
from ._session_pool import SessionPool
from ._tasks import Answer, Entity, Prediction, Word
from .session import Session
from .tokenizer import Tokenizer

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple,
                        Union)

    import numpy as np

    from ._images import Image
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


def _choose(table, name, value):
    if value not in table:
        expected = ", ".join(str(key) for key in table)
        raise error(f"{name}: found {value!r}, expected one of {expected}", lib.FT_EARG)
    return table[value]


def _listed(texts):
    """A single text counts as a list of one."""
    return [texts] if isinstance(texts, str) else list(texts)


class Model:
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
                                                 "verify": _choose(VERIFY, "verify", verify),
                                                 "kv": _choose(KV, "kv", kv)})
        function = lib.ft_model_open_for_embedding if embed else lib.ft_model_open
        out = ffi.new("ft_model **")
        call(function, out, os.fsencode(path), options)
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

    def _require_head(self, heads, what):
        head = self.config.get("head")
        if head not in heads:
            raise error(f"{self.path}: found head \"{head}\", expected {what}",
                        lib.FT_EUNSUPPORTED)

    # ---- Encoders ------------------------------------------------------------------------------

    def embed(self, texts: Union[str, Iterable[str]], prompt: Optional[str] = None,
              dim: Optional[int] = None, truncate: bool = False,
              max_length: int = 0) -> "np.ndarray":
        """Embed texts: pooled, through the Dense layers and normalized as the checkpoint says.

        Args:
            prompt: name of the prompt before each text; default: that of the model.
            dim: the first values of the embeddings (Matryoshka), normalized again.
            truncate: truncate to max_seq_length; else a longer text is an error.
            max_length: truncate to this many tokens.

        Returns:
            float32 [texts, D].

        Raises:
            FtError: FT_EUNSUPPORTED for a model without embeddings; FT_EARG for an unknown
                prompt or dim; FT_ELIMIT for a text longer than the model's positions.
        """
        rows = self._embedding_rows(texts, prompt, truncate, max_length)
        parts = [outputs["embedding"] for _, outputs in _rows.forward(self, rows, ["embedding"])]
        return self._embeddings(parts, dim)

    def _embedding_rows(self, texts, prompt, truncate, max_length):
        if not self._info.embedding:
            raise error(f"{self.path}: found a model without embeddings; decoders need embed=True "
                        "of Model.open()", lib.FT_EUNSUPPORTED)
        return _rows.encode_rows(self, _listed(texts), truncate, max_length,
                                 _tasks.prompt_of(self, prompt))

    def _embeddings(self, parts, dim):
        """The embeddings of all batches, cut to the first values."""
        np = numpy()
        found = np.concatenate(parts) if parts else np.empty((0, self.hidden), "float32")
        if dim is None:
            return found
        if not 0 < dim <= found.shape[1]:
            raise error(f"dim: found {dim}, expected 1 to {found.shape[1]}", lib.FT_EARG)
        # A decoder opened with embed=True has unit norm, which its artifact does not say.
        normalizes = self.config.get("normalize") or self.config.get("embedding") == "none"
        return _tasks.cut(np, found, dim, normalizes)

    def classify(self, texts: "Iterable[Union[str, Tuple[str, str]]]", truncate: bool = False,
                 max_length: int = 0) -> List[Prediction]:
        """Classify texts, or pairs of texts given as tuples.

        Raises:
            FtError: FT_EUNSUPPORTED for a model without a classification head; FT_ELIMIT for a
                text longer than the model's positions, unless it is truncated.
        """
        return [_tasks.prediction(self, row)
                for row in self._class_logits(texts, truncate, max_length)]

    def rerank(self, query: str, texts: Iterable[str], truncate: bool = False,
               max_length: int = 0) -> "np.ndarray":
        """Scores of texts for a query, by a cross-encoder.

        Returns:
            float64 [texts]: the probability of the only label, or of the last one; of a
            regression the logit.
        """
        pairs = [(query, text) for text in _listed(texts)]
        scores = [_tasks.prediction(self, row).probabilities[-1]
                  for row in self._class_logits(pairs, truncate, max_length)]
        return numpy().array(scores, "float64")

    def _class_logits(self, texts, truncate, max_length):
        rows = self._class_rows(texts, truncate, max_length)
        for _, outputs in _rows.forward(self, rows, ["logits"]):
            yield from outputs["logits"]

    def _class_rows(self, texts, truncate, max_length):
        if self.problem_type is None or self.config.get("head") in ("tokens", "span", "lm"):
            raise error(f"{self.path}: found a model that classifies no texts (family "
                        f"{self.family}, head {self.config.get('head')})", lib.FT_EUNSUPPORTED)
        return _rows.encode_rows(self, _listed(texts), truncate, max_length,
                                 _tasks.prompt_of(self, None))

    def classify_tokens(self, texts: Union[str, Iterable[str]], aggregation: str = "simple",
                        truncate: bool = False, max_length: int = 0) -> List[List[Entity]]:
        """The entities of texts, as aggregation_strategy of transformers finds them.

        Args:
            aggregation: "simple": label each entity by all of its tokens; "first": by the first
                of each word.
        """
        self._require_head(["tokens"], "a model for token classification")
        by_word = _choose({"simple": False, "first": True}, "aggregation", aggregation)
        texts, found = _listed(texts), []
        rows = _rows.encode_rows(self, texts, truncate, max_length, _tasks.prompt_of(self, None))
        for first, outputs in _rows.forward(self, rows, ["logits"]):
            for i, logits in enumerate(outputs["logits"], first):
                found.append(_tasks.entities(self, texts[i], rows[i], logits, by_word))
        return found

    entities = classify_tokens

    def answer(self, question: str, context: str) -> Answer:
        """The answer to a question in a context, or none, as in SQuAD 2.0.

        A context that is longer than the model's sequences is read in windows that overlap.

        Raises:
            FtError: FT_EUNSUPPORTED for a model without a head for question answering; FT_ELIMIT
                if the question alone is too long.
        """
        self._require_head(["span"], "a model for question answering")
        rows = _rows.encode_windows(self, question, context)
        names = ["start_logits", "end_logits"]
        logits = [pair for _, outputs in _rows.forward(self, rows, names)
                  for pair in zip(*(outputs[name] for name in names))]
        return _tasks.answer(context, [(row, *pair) for row, pair in zip(rows, logits)])

    def fill_mask(self, texts: Union[str, Iterable[str]], top: int = 5, truncate: bool = False,
                  max_length: int = 0) -> List[List[List[Word]]]:
        """The most probable words for each mask token, such as [MASK], of each text.

        Args:
            top: words for each mask, at most 100.

        Returns:
            For each text, for each of its masks, words, the most probable one first.

        Raises:
            FtError: FT_EUNSUPPORTED for a model that is no masked language model; FT_ELIMIT for a
                text longer than the model's positions, unless it is truncated.
        """
        self._require_head(["lm"], "a masked language model")
        if not 0 < top <= lib.FT_TOP_TOKENS_MAX:
            raise error(f"top: found {top}, expected 1 to {lib.FT_TOP_TOKENS_MAX}", lib.FT_EARG)
        rows = _rows.encode_rows(self, _listed(texts), truncate, max_length,
                                 _tasks.prompt_of(self, None))
        return [_tasks.words(self.tokenizer, rows[i], logits, top)
                for first, outputs in _rows.forward(self, rows, ["logits"])
                for i, logits in enumerate(outputs["logits"], first)]

    # ---- Images --------------------------------------------------------------------------------

    def pixel_values(self, images: "Union[Image, Iterable[Image]]") -> "np.ndarray":
        """Images as the input "pixel_values" of sessions, as preprocessor_config.json says.

        Args:
            images: paths of PNG and JPEG files; arrays uint8 [height, width, 3], or what NumPy
                makes such arrays of, as images of Pillow.

        Returns:
            float32 [images, 3, height, width].

        Raises:
            FtError: FT_EUNSUPPORTED for a model of texts; FT_EFORMAT, FT_EIO, FT_ELIMIT for a
                file that cannot be read.
        """
        return _images.pixel_values(self, _images.listed(images))

    def classify_images(self, images: "Union[Image, Iterable[Image], np.ndarray]"
                        ) -> List[Prediction]:
        """Classify images.

        Args:
            images: as of pixel_values(), or its result.

        Raises:
            FtError: as pixel_values(); FT_EUNSUPPORTED without a classification head.
        """
        return [_tasks.prediction(self, row) for row in _images.class_logits(self, images)]

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
        prompts = _listed(prompts)
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
                   for text in _listed(texts)]
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
