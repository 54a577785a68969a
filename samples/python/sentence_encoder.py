"""Encode sentences with the methods that programs for sentence-transformers call.

    from sentence_encoder import SentenceEncoder

    model = SentenceEncoder("embedder.ft")
    embeddings = model.encode(["A sentence.", "Another one."])
    model.similarity(embeddings, embeddings)

SPDX-License-Identifier: Apache-2.0
"""
import numpy as np

import ftruntime as ft


class SentenceEncoder:
    """An embedding model: an encoder, or with embed=True a decoder."""

    def __init__(self, path, device="cpu", truncate_dim=None, **options):
        self.model = ft.Model.open(path, device=device, **options)
        self.truncate_dim = truncate_dim

    def encode(self, sentences, prompt_name=None, normalize_embeddings=False, truncate_dim=None,
               **unused):
        """float32 [D] of a text, or [texts, D] of a list.  Other options have no effect."""
        single = isinstance(sentences, str)
        found = self.model.embed(sentences, prompt=prompt_name, truncate=True,
                                 dim=truncate_dim or self.truncate_dim)
        if normalize_embeddings:
            found = normalized(found)
        return found[0] if single else found

    def encode_query(self, sentences, **options):
        return self._encode_as(["query"], sentences, options)

    def encode_document(self, sentences, **options):
        return self._encode_as(["document", "passage", "corpus"], sentences, options)

    def _encode_as(self, prompts, sentences, options):
        """With the first of these prompts that the model has, or else its default one."""
        for prompt in prompts:
            try:
                return self.encode(sentences, prompt_name=prompt, **options)
            except ft.FtError as failure:
                if failure.status != "FT_EARG":
                    raise
        return self.encode(sentences, **options)

    def get_sentence_embedding_dimension(self):
        return self.truncate_dim or self.encode("").shape[0]

    @staticmethod
    def similarity(first, second):
        """The cosine of each row of one matrix with each of the other."""
        return normalized(np.atleast_2d(first)) @ normalized(np.atleast_2d(second)).T


def normalized(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
