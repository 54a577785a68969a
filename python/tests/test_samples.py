"""The adapters in samples/python give what the package gives.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys
import unittest

import ftruntime as ft
import support

sys.path.append(os.path.join(support.SOURCES, "samples/python"))

TEXTS = ["a b", "c"]


class Sentences(unittest.TestCase):
    def setUp(self):
        from sentence_encoder import SentenceEncoder

        path = support.generated("prompted")
        self.model, self.encoder = ft.Model.open(path), SentenceEncoder(path)

    def test_embeddings_are_those_of_the_model(self):
        expected = self.model.embed(TEXTS)
        self.assertEqual(self.encoder.encode(TEXTS).tolist(), expected.tolist())
        self.assertEqual(self.encoder.encode(TEXTS[1]).tolist(), expected[1].tolist())
        self.assertEqual(self.encoder.get_sentence_embedding_dimension(), expected.shape[1])

    def test_queries_and_documents_have_their_prompts(self):
        for encode, prompt in ((self.encoder.encode_query, "query"),
                               (self.encoder.encode_document, "passage")):
            self.assertEqual(encode(TEXTS).tolist(), self.model.embed(TEXTS, prompt).tolist())

    def test_the_similarity_is_the_cosine(self):
        found = self.encoder.similarity([[1.0, 0.0], [3.0, 4.0]], [0.0, 2.0])
        self.assertEqual(found.tolist(), [[0.0], [0.8]])

    def test_a_dimension_that_the_model_lacks_is_refused(self):
        with self.assertRaises(ft.FtError):
            self.encoder.encode_query("a", truncate_dim=1000)


class LangChain(unittest.TestCase):
    def setUp(self):
        try:
            import langchain_ft
        except ImportError as missing:
            self.skipTest(f"no {missing.name}")
        self.adapters = langchain_ft

    def test_embeddings_have_the_prompts_of_the_model(self):
        path = support.generated("prompted")
        model, embeddings = ft.Model.open(path), self.adapters.FtEmbeddings(path)
        self.assertEqual(embeddings.embed_documents(TEXTS), model.embed(TEXTS, "passage").tolist())
        self.assertEqual(embeddings.embed_query("a"), model.embed("a", "query")[0].tolist())

    def test_texts_are_those_of_the_model(self):
        path = support.generated("decoder")
        model, llm = ft.Model.open(path), self.adapters.FtLLM(path=path, max_new_tokens=20)
        expected = [found.text for found in model.generate(TEXTS, max_new_tokens=20)]
        self.assertEqual(llm.batch(TEXTS), expected)
        self.assertEqual("".join(llm.stream(TEXTS[0])), expected[0])
        stop = expected[0][5]
        self.assertEqual(llm.invoke(TEXTS[0], stop=[stop]), expected[0].split(stop)[0])


if __name__ == "__main__":
    unittest.main()
