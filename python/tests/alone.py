"""What an installed wheel computes where nothing else of FT is: .ci/wheel runs this in a bare root.

    FT_SRCDIR=SOURCES python alone.py

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import tempfile
import unittest

import ftruntime as ft
import numpy as np

SOURCES = os.environ["FT_SRCDIR"]
CLASSIFIER = os.path.join(SOURCES, "samples/source-language-bert")
DECODER = os.path.join(SOURCES, "tests/data/old/0.1.0/llama.float.ft")

SNIPPETS = 480
RIGHT = 414  # of them: the accuracy 0.8625 of README.md


class Alone(unittest.TestCase):
    def test_a_checkpoint_becomes_a_quantized_classifier(self):
        with open(os.path.join(CLASSIFIER, "evaluation.jsonl"), encoding="utf-8") as file:
            snippets = [json.loads(line) for line in file]
        with tempfile.TemporaryDirectory() as folder:
            float_path, int8_path = (os.path.join(folder, name) for name in ("a.ft", "b.ft"))
            ft.convert(CLASSIFIER, float_path)
            ft.calibrate(float_path, int8_path, scheme="w8a16")
            found = ft.Model.open(int8_path).classify([s["text"] for s in snippets], truncate=True)
        self.assertEqual(len(found), SNIPPETS)
        right = sum(f.label == s["label"] for f, s in zip(found, snippets))
        self.assertEqual(right, RIGHT)

    def test_a_decoder_generates_what_its_logits_say(self):
        model, prompt = ft.Model.open(DECODER), [5, 17, 42]
        found = model.generate([prompt], max_new_tokens=12, stop_ids=[])[0]
        ids, session = list(prompt), model.session()
        for _ in range(12):
            logits = session.run({"input_ids": np.array([ids], "int32")})["logits"]
            ids.append(int(logits[0].argmax()))
        self.assertEqual(found.ids, ids[len(prompt):])


if __name__ == "__main__":
    unittest.main()
