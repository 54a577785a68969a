"""Encoders give what ft-run gives.

SPDX-License-Identifier: Apache-2.0
"""
import unittest

import ftruntime as ft
import numpy as np
import support

TEXTS = ["a b c", "d e f g", "l", "a a a a a"]


class Encoders(unittest.TestCase):
    def assert_predictions(self, path, texts, *options):
        model = ft.Model.open(path)
        found = model.classify(texts)
        lines = ["\t".join(text) if isinstance(text, tuple) else text for text in texts]
        expected = support.run(path, *options, *lines)
        for prediction, result in zip(found, expected):
            self.assertEqual(np.float32(prediction.logits).tolist(),
                             np.float32(result["logits"]).tolist())
            if "label" in result:
                self.assertEqual(prediction.label, result["label"])
            if "probability" in result:
                self.assertEqual(prediction.index, result["index"])
                self.assertEqual(f"{prediction.score:.9g}", f"{result['probability']:.9g}")
            for mine, theirs in zip(prediction.probabilities, result.get("probabilities", [])):
                self.assertEqual(f"{mine:.9g}", f"{theirs:.9g}")
        self.assertEqual(len(found), len(expected))

    def test_classes_are_those_of_ft_run(self):
        for path in support.models("classifier", "source-language-bert"):
            self.assert_predictions(path, TEXTS)

    def test_labels_of_other_problem_types_are_those_of_ft_run(self):
        self.assert_predictions(support.generated("multi"), TEXTS)
        self.assert_predictions(support.generated("regression"), TEXTS)

    def test_pairs_are_classified_and_reranked_as_pairs(self):
        pairs = [("a b", "c d"), ("a b", "l")]
        self.assert_predictions(support.generated("classifier"), pairs, "--pairs")
        model = ft.Model.open(support.generated("regression"))
        scores = model.rerank("a b", ["c d", "l"])
        expected = support.run(model.path, "--pairs", "a b\tc d", "a b\tl")
        self.assertEqual(np.float32(scores).tolist(),
                         [np.float32(result["logits"][0]) for result in expected])

    def test_embeddings_are_those_of_ft_run(self):
        path = support.generated("embedder")
        model = ft.Model.open(path)
        expected = [np.float32(r["embedding"]) for r in support.run(path, *TEXTS)]
        self.assertEqual(model.embed(TEXTS).tolist(), np.stack(expected).tolist())
        cut = [np.float32(r["embedding"]) for r in support.run(path, "--dim", "4", *TEXTS)]
        self.assertEqual(model.embed(TEXTS, dim=4).tolist(), np.stack(cut).tolist())

    def test_prompts_are_those_of_ft_run(self):
        path = support.generated("prompted")
        model = ft.Model.open(path)
        for options, prompt in ([], None), (["--prompt-name", "passage"], "passage"):
            expected = [np.float32(r["embedding"]) for r in support.run(path, *options, *TEXTS)]
            self.assertEqual(model.embed(TEXTS, prompt=prompt).tolist(),
                             np.stack(expected).tolist())
        with self.assertRaises(ft.FtError) as caught:
            model.embed(TEXTS, prompt="other")
        self.assertIn("passage", str(caught.exception))

    def test_decoders_embed_as_ft_run_embeds(self):
        for path in support.models("decoder", "python-llama"):
            model = ft.Model.open(path, embed=True)
            expected = [np.float32(r["embedding"]) for r in support.run(path, "--embed", *TEXTS)]
            self.assertEqual(model.embed(TEXTS).tolist(), np.stack(expected).tolist())
            cut = [np.float32(r["embedding"])
                   for r in support.run(path, "--embed", "--dim", "6", *TEXTS)]
            self.assertEqual(model.embed(TEXTS, dim=6).tolist(), np.stack(cut).tolist())

    def test_many_texts_are_split_into_batches(self):
        model = ft.Model.open(support.generated("embedder"))
        many = model.embed(TEXTS * 300)
        self.assertEqual(many.tolist(), model.embed(TEXTS).tolist() * 300)

    def test_no_texts_give_no_rows(self):
        self.assertEqual(ft.Model.open(support.generated("embedder")).embed([]).shape[0], 0)
        self.assertEqual(ft.Model.open(support.generated("classifier")).classify([]), [])

    def test_entities_are_those_of_ft_run(self):
        texts = ["a b c d", "def größe(x): return 'ä'  # é"]
        for path in support.models("tokens", "python-token-bert"):
            model = ft.Model.open(path)
            for how in "simple", "first":
                found = model.entities(texts[:1] if "tokens" in path else texts, aggregation=how)
                expected = support.run(path, "--aggregation", how, *texts[:len(found)])
                for mine, theirs in zip(found, expected):
                    self.assertEqual([(e.label, f"{e.score:.9g}", e.start, e.end, e.text)
                                      for e in mine],
                                     [(e["label"], f"{e['score']:.9g}", e["start"], e["end"],
                                       e["text"]) for e in theirs["entities"]])

    def test_labels_without_names_are_numbered(self):
        text = "def größe(x): return 'ä'  # é"
        path = support.trained("python-token-bert")
        if path is None:
            self.skipTest("FT_MODELS has no python-token-bert")
        named = ft.Model.open(path)
        numbered = ft.Model.open(support.unnamed("python-token-bert"))
        logits = numbered.session().run(
            {"input_ids": [numbered.tokenizer.encode(text).ids]})["logits"]
        labels = [int(label) for label in logits[0, 1:-1].argmax(axis=1)]
        changes = [label for label, before in zip(labels, [None, *labels]) if label != before]
        found = [e.label for e in numbered.entities(text)[0]]
        self.assertEqual(found, [f"LABEL_{label}" for label in changes])
        expected = support.run(numbered.path, text)[0]["entities"]
        self.assertEqual(found, [entity["label"] for entity in expected])
        self.assertGreater(len(set(found)), 2)
        self.assertEqual(len(named.labels), len(numbered.labels))

    def test_entities_of_pairs_are_in_the_text_of_their_tokens(self):
        found = ft.Model.open(support.generated("tokens")).entities([("a b", "c d e")])[0]
        for entity in found:
            self.assertIn(entity.text, (("a b", "c d e")[0][entity.start:entity.end],
                                        ("a b", "c d e")[1][entity.start:entity.end]))

    def test_masked_words_are_those_of_ft_run(self):
        path = support.generated("masked")
        model = ft.Model.open(path)
        texts = ["a [MASK] c", "[MASK] b [MASK]", "a b"]
        for options, top in ([], 5), (["--top", "3"], 3):
            found = model.fill_mask(texts, top=top)
            expected = support.run(path, *options, *texts)
            self.assertEqual([len(masks) for masks in found], [1, 2, 0])
            self.assertEqual([[[(w.text, w.id, f"{w.score:.9g}") for w in words]
                               for words in masks] for masks in found],
                             [[[(w["token"], w["id"], f"{w['score']:.9g}") for w in words]
                               for words in result["masks"]] for result in expected])
        with self.assertRaises(ft.FtError) as caught:
            model.fill_mask(texts, top=101)
        self.assertIn("101", str(caught.exception))

    def assert_answer(self, model, question, context):
        found = model.answer(question, context)
        expected = support.run(model.path, "--pairs", f"{question}\t{context}")[0]
        self.assertEqual(found.text, expected["answer"])
        self.assertEqual(f"{found.score:.9g}", f"{expected['score']:.9g}")
        self.assertEqual((found.start, found.end), (expected.get("start"), expected.get("end")))

    def test_answers_are_those_of_ft_run(self):
        self.assert_answer(ft.Model.open(support.generated("span")), "a b", "c d e f")
        path = support.trained("signature-qa-bert")
        if path is not None:
            self.assert_answer(ft.Model.open(path), "What does größe do?",
                               'def größe(x): """Return the size of x, é."""')

    def test_long_contexts_are_read_in_windows_as_ft_run_reads_them(self):
        model = ft.Model.open(support.generated("span"))
        self.assert_answer(model, "a b", "c d e f g l " * 8)
        with self.assertRaises(ft.FtError) as caught:
            model.answer("a b c d e f g l", "a")
        self.assertEqual(caught.exception.status, "FT_ELIMIT")
        path = support.trained("signature-qa-bert")
        if path is not None:
            code = "".join(f"def get_{i}(x): return x + {i}  # é\n" for i in range(60))
            self.assert_answer(ft.Model.open(path), "Which function returns x + 47?",
                               code.replace("\n", " "))

    def test_texts_that_are_too_long_are_refused_or_truncated(self):
        model = ft.Model.open(support.generated("classifier"))
        with self.assertRaises(ft.FtError) as caught:
            model.classify(["a " * 50])
        self.assertEqual(caught.exception.status, "FT_ELIMIT")
        self.assertEqual(len(model.classify(["a " * 50], truncate=True)), 1)

    def test_a_model_without_the_head_is_refused(self):
        model = ft.Model.open(support.generated("embedder"))
        for function in (model.classify, model.entities, model.generate, model.translate,
                         model.fill_mask, model.pixel_values, model.classify_images):
            with self.assertRaises(ft.FtError) as caught:
                function(["a"])
            self.assertEqual(caught.exception.status, "FT_EUNSUPPORTED")

    def test_tokenizers_encode_and_decode(self):
        tokenizer = ft.Model.open(support.generated("classifier")).tokenizer
        encoding = tokenizer.encode("a B", "c")
        self.assertEqual(encoding.ids, [2, 5, 6, 3, 7, 3])
        self.assertEqual(encoding.type_ids, [0, 0, 0, 0, 1, 1])
        self.assertEqual(encoding.offsets[1:3], [(0, 1), (2, 3)])
        self.assertEqual(tokenizer.encode("é a").offsets[2], (2, 3))
        self.assertEqual(tokenizer.token_to_id("[SEP]"), 3)
        self.assertIsNone(tokenizer.token_to_id("missing"))
        self.assertEqual(tokenizer.id_to_token(5), "a")
        self.assertIn("a", tokenizer.decode(encoding.ids))


if __name__ == "__main__":
    unittest.main()
