"""The calls of encoders: embeddings, classes, entities, answers, masked words, images.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from . import _images, _rows, _tasks
from ._arguments import choose, listed
from ._arrays import numpy
from ._library import error, lib
from ._tasks import Answer, Entity, Prediction, Word

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple, Union

    import numpy as np

    from ._images import Image


class EncoderCalls:
    """What a Model computes in one pass of each text or image."""

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
        return _rows.encode_rows(self, listed(texts), truncate, max_length,
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
        pairs = [(query, text) for text in listed(texts)]
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
        return _rows.encode_rows(self, listed(texts), truncate, max_length,
                                 _tasks.prompt_of(self, None))

    def classify_tokens(self, texts: Union[str, Iterable[str]], aggregation: str = "simple",
                        truncate: bool = False, max_length: int = 0) -> List[List[Entity]]:
        """The entities of texts, as aggregation_strategy of transformers finds them.

        Args:
            aggregation: "simple": label each entity by all of its tokens; "first": by the first
                of each word.
        """
        self._require_head(["tokens"], "a model for token classification")
        by_word = choose({"simple": False, "first": True}, "aggregation", aggregation)
        texts, found = listed(texts), []
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
        rows = _rows.encode_rows(self, listed(texts), truncate, max_length,
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

    def _require_head(self, heads, what):
        head = self.config.get("head")
        if head not in heads:
            raise error(f"{self.path}: found head \"{head}\", expected {what}",
                        lib.FT_EUNSUPPORTED)
