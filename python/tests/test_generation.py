"""Generation and translation give what ft-run gives.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import unittest

import ftruntime as ft
import support

PROMPTS = ["def add(a, b):", "import ", "a"]


class Decoders(unittest.TestCase):
    def test_texts_are_those_of_ft_run(self):
        for path in support.models("decoder", "python-llama"):
            model = ft.Model.open(path)
            for options in ({}, {"temperature": 0.8, "top_p": 0.9, "seed": 5}, {"stop": ["\n"]}):
                found = model.generate(PROMPTS, max_new_tokens=20, **options)
                arguments = [x for name, value in options.items() for x in
                             ("--" + name.replace("_", "-"),
                              value[0] if name == "stop" else str(value))]
                expected = support.run(path, "--max-new-tokens", "20", *arguments, *PROMPTS)
                self.assertEqual([(g.text, g.ids, g.finish_reason) for g in found],
                                 [(e["text"], e["ids"], e["finish_reason"]) for e in expected])

    def test_a_stream_has_the_same_tokens(self):
        model = ft.Model.open(support.generated("decoder"))
        whole = model.generate(PROMPTS, max_new_tokens=20)
        texts, ids = [""] * 3, [[], [], []]
        for token in model.generate(PROMPTS, stream=True, max_new_tokens=20):
            texts[token.request] += token.text
            ids[token.request].append(token.id)
        self.assertEqual(texts, [g.text for g in whole])
        self.assertEqual(ids, [g.ids for g in whole])

    def test_closing_a_stream_cancels_it(self):
        model = ft.Model.open(support.generated("decoder"))
        stream = model.generate(["a"], stream=True, max_new_tokens=100000, stop_ids=[])
        next(stream)
        stream.close()
        self.assertEqual(len(model.generate(["a"], max_new_tokens=2, stop_ids=[])[0].ids), 2)

    def assert_ends(self, program, status):
        command = [sys.executable, "-c", program, support.generated("decoder")]
        done = subprocess.run(command, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (status, b""))

    def test_an_interrupt_cancels_all_prompts(self):
        program = ("import signal, sys, ftruntime as ft\n"
                   "model = ft.Model.open(sys.argv[1])\n"
                   "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
                   "signal.setitimer(signal.ITIMER_REAL, 0.5)\n"
                   "try:\n"
                   "    model.generate(['a'] * 4, max_new_tokens=100000, stop_ids=[])\n"
                   "except KeyboardInterrupt:\n"
                   "    sys.exit(7)\n")
        self.assert_ends(program, 7)

    def test_a_program_may_end_during_a_stream(self):
        program = ("import sys, ftruntime as ft\n"
                   "model = ft.Model.open(sys.argv[1])\n"
                   "stream = model.generate(['a'], stream=True, max_new_tokens=100000, "
                   "stop_ids=[])\n"
                   "next(stream)\n")
        self.assert_ends(program, 0)

    def test_chats_are_those_of_ft_run(self):
        model = ft.Model.open(support.generated("decoder"))
        messages = [{"role": "system", "content": "b"}, {"role": "user", "content": "a"}]
        found = model.chat(messages, max_new_tokens=8)
        expected = support.run(model.path, "--chat", "--system", "b", "--max-new-tokens", "8", "a")
        self.assertEqual((found.text, found.ids), (expected[0]["text"], expected[0]["ids"]))
        for content in (None, "a\0b"):
            with self.assertRaises(ft.FtError):
                model.chat([{"role": "user", "content": content}])

    def test_token_ids_suffice_for_a_model_without_a_tokenizer(self):
        path = os.path.join(support.SOURCES, "tests/data/old/0.1.0/llama.float.ft")
        model, ids = ft.Model.open(path), [5, 17, 42]
        found = model.generate([ids], max_new_tokens=4)[0]
        self.assertEqual((len(found.ids), found.text), (4, ""))
        for prompts, stop in (["a"], ()), ([ids], ["a"]):
            with self.assertRaises(ft.FtError) as caught:
                model.generate(prompts, stop=stop, max_new_tokens=4)
            self.assertEqual(caught.exception.status, "FT_EUNSUPPORTED")

    def test_invalid_requests_raise(self):
        model = ft.Model.open(support.generated("decoder"))
        with self.assertRaises(TypeError):
            model.generate(["a"], temprature=1)
        with self.assertRaises(ft.FtError) as caught:
            model.generate([[100000]])
        self.assertEqual(caught.exception.status, "FT_EARG")
        with self.assertRaises(ft.FtError):
            list(model.generate([[100000]], stream=True))


class Translators(unittest.TestCase):
    def texts(self, path):
        return ["w5 w6 w7", "w9"] if "translator" in path else ["1 2 3", "4 0"]

    def test_translations_are_those_of_ft_run(self):
        for path in support.models("translator", "numbers-m2m"):
            model, texts = ft.Model.open(path), self.texts(path)
            found = model.translate(texts, max_new_tokens=8)
            expected = support.run(path, "--max-new-tokens", "8", *texts)
            self.assertEqual([(g.text, g.ids) for g in found],
                             [(e["text"], e["ids"]) for e in expected])

    def test_a_stream_of_translations_has_the_same_tokens(self):
        path = support.generated("translator")
        model, texts = ft.Model.open(path), self.texts(path)
        whole = model.translate(texts, max_new_tokens=8)
        ids = [[] for _ in texts]
        for token in model.translate(texts, stream=True, max_new_tokens=8):
            ids[token.request].append(token.id)
        self.assertEqual(ids, [g.ids for g in whole])
        with self.assertRaises(ft.FtError):
            model.translate(texts, stream=True, beams=2)

    def test_beam_searches_are_those_of_ft_run(self):
        for path in support.models("translator", "numbers-m2m"):
            model, texts = ft.Model.open(path), self.texts(path)
            found = model.translate(texts, beams=4, n_best=2, max_new_tokens=8)
            expected = support.run(path, "--beams", "4", "--n-best", "2", "--max-new-tokens", "8",
                                   *texts)
            flat = [h for hypotheses in found for h in hypotheses]
            listed = [h for e in expected for h in e.get("hypotheses", [e])]
            self.assertEqual([(h.text, h.ids, f"{h.score:.7g}") for h in flat],
                             [(e["text"], e["ids"], f"{e['score']:.7g}") for e in listed])


if __name__ == "__main__":
    unittest.main()
