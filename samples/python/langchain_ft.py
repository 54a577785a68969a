"""Models of FT for LangChain: embeddings, and a language model that continues texts.

    from langchain_ft import FtEmbeddings, FtLLM

    FtEmbeddings("embedder.ft").embed_query("a text")
    FtLLM(path="llama.ft", max_new_tokens=50).invoke("def add(a, b):")

For chats, start `python -m ftruntime.serve` and use ChatOpenAI with its address.

SPDX-License-Identifier: Apache-2.0
"""
from functools import cached_property

from langchain_core.embeddings import Embeddings
from langchain_core.language_models.llms import LLM
from langchain_core.outputs import GenerationChunk

import ftruntime as ft
from sentence_encoder import SentenceEncoder


class FtEmbeddings(Embeddings):
    """The embeddings of documents and queries, with the prompts of the model."""

    def __init__(self, path, **options):
        self.encoder = SentenceEncoder(path, **options)

    def embed_documents(self, texts):
        return self.encoder.encode_document(texts).tolist()

    def embed_query(self, text):
        return self.encoder.encode_query(text).tolist()


class FtLLM(LLM):
    """A decoder; temperature 0 is greedy."""

    path: str
    device: str = "cpu"
    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    @cached_property
    def model(self):
        return ft.Model.open(self.path, device=self.device)

    @property
    def _llm_type(self):
        return "ft"

    @property
    def _identifying_params(self):
        return {"path": self.path, **self._sampling}

    @property
    def _sampling(self):
        return {"max_new_tokens": self.max_new_tokens, "temperature": self.temperature,
                "top_p": self.top_p, "seed": self.seed}

    def _call(self, prompt, stop=None, run_manager=None, **sampling):
        options = {**self._sampling, **sampling}
        return self.model.generate([prompt], stop=stop or (), **options)[0].text

    def _stream(self, prompt, stop=None, run_manager=None, **sampling):
        options = {**self._sampling, **sampling}
        for token in self.model.generate([prompt], stream=True, stop=stop or (), **options):
            if run_manager is not None:
                run_manager.on_llm_new_token(token.text)
            yield GenerationChunk(text=token.text)
