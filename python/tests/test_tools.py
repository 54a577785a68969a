"""convert() and calibrate() run the programs of the wheel.

SPDX-License-Identifier: Apache-2.0
"""
import os
import unittest

import ftruntime as ft
import support


def target(name):
    return os.path.join(support.FOLDER, name)


class Tools(unittest.TestCase):
    def test_calibrated_models_are_quantized_and_run(self):
        samples = target("samples.txt")
        with open(samples, "w") as file:
            file.write("a b c\nd e f\n" * 20)
        progress = []
        ft.calibrate(support.generated("classifier"), target("int8.ft"), text=samples,
                     target="none", progress=lambda *what: progress.append(what))
        model = ft.Model.open(target("int8.ft"), verify="sha256")
        self.assertEqual(model.precision, "int8")
        self.assertEqual(len(model.classify(["a b c"])), 1)
        for label, done, total in progress:
            self.assertTrue(label)
            self.assertLessEqual(done, total)

    def test_options_are_those_of_the_program(self):
        ft.calibrate(support.generated("decoder"), target("w8.ft"), scheme="w8a16", group=32,
                     group_pad=True)
        self.assertEqual(ft.Model.open(target("w8.ft")).precision, "groupwise")

    def test_messages_of_the_programs_are_errors(self):
        with self.assertRaises(ft.FtError) as caught:
            ft.convert("/missing", target("x.ft"))
        self.assertEqual(str(caught.exception), "ft-convert: /missing: No such file or directory")
        with self.assertRaises(ft.FtError) as caught:
            ft.calibrate(support.generated("decoder"), target("y.ft"), scheme="w3")
        self.assertIn("w3", str(caught.exception))
        self.assertFalse(os.path.exists(target("x.ft")) or os.path.exists(target("y.ft")))

    def test_an_exception_in_progress_ends_the_program(self):
        def stop(*_):
            raise KeyboardInterrupt

        path = support.trained("python-llama")
        if path is None:
            self.skipTest("FT_MODELS has no python-llama, which takes long enough")
        samples = target("long.txt")
        with open(samples, "w") as file:
            file.write("def add(a, b): return a + b\n" * 400)
        with self.assertRaises(KeyboardInterrupt):
            ft.calibrate(path, target("z.ft"), text=samples, progress=stop)
        self.assertFalse(os.path.exists(target("z.ft")))


if __name__ == "__main__":
    unittest.main()
