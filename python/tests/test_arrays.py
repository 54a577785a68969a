"""Sessions: arrays in and out, bound buffers, DLPack, threads.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import threading
import time
import unittest

import ftruntime as ft
import numpy as np
import support

IDS = np.array([[2, 5, 6, 3], [2, 7, 3, 0]], "int32")
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32")


class Exporter:
    """An object that is no array but has __dlpack__."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Sessions(unittest.TestCase):
    def setUp(self):
        self.model = ft.Model.open(support.generated("classifier"))
        self.session = self.model.session()

    def logits(self, ids, mask=None):
        inputs = {"input_ids": ids} if mask is None else {"attention_mask": mask, "input_ids": ids}
        return self.session.run(inputs)["logits"]

    def test_rows_are_what_classify_gives(self):
        texts = ["a b", "c"]
        expected = [prediction.logits for prediction in self.model.classify(texts)]
        found = self.logits(IDS, MASK)
        self.assertEqual((found.dtype.name, found.tolist()), ("float32", expected))

    def test_int64_and_strided_inputs_are_the_same(self):
        expected = self.logits(IDS).tolist()
        self.assertEqual(self.logits(IDS.astype("int64")).tolist(), expected)
        self.assertEqual(self.logits(np.asfortranarray(IDS)).tolist(), expected)
        self.assertEqual(self.logits(IDS.tolist()).tolist(), expected)

    def test_dlpack_goes_both_ways(self):
        expected = self.logits(IDS, MASK)
        found = self.logits(Exporter(IDS.copy()), Exporter(MASK.copy()))
        self.assertEqual(found.tolist(), expected.tolist())
        view = np.from_dlpack(Exporter(found))
        self.assertTrue(np.shares_memory(view, found))

    def test_bound_buffers_are_read_and_written_in_place(self):
        ids, mask, logits = IDS.copy(), MASK.copy(), np.zeros((2, 3), "float32")
        binding = self.session.bind({"input_ids": ids, "attention_mask": mask}, {"logits": logits})
        binding.run()
        self.assertEqual(logits.tolist(), self.logits(IDS, MASK).tolist())
        ids[0, 1] = 9
        binding.run()
        self.assertEqual(logits.tolist(), self.logits(ids, MASK).tolist())

    def test_buffers_that_cannot_be_bound_are_refused(self):
        shape = np.zeros((2, 4), "float32")
        fixed = np.zeros((2, 3), "float32")
        fixed.flags.writeable = False
        for output in (shape, fixed, np.zeros((2, 3), "int32"),
                       np.zeros((2, 6), "float32")[:, ::2]):
            with self.assertRaises(ft.FtError):
                self.session.bind({"input_ids": IDS}, {"logits": output})
        with self.assertRaises(ft.FtError):
            self.session.bind({"input_ids": IDS.T}, {"logits": np.zeros((4, 3), "float32")})
        with self.assertRaises(ft.FtError):
            self.session.bind({"input_ids": IDS.tolist()}, {"logits": np.zeros((2, 3), "float32")})

    def test_invalid_inputs_are_refused(self):
        for ids in (IDS.astype("float64"), IDS + 1000, IDS[0, 0], np.zeros((1, 50), "int32")):
            with self.assertRaises(ft.FtError):
                self.logits(ids)
        with self.assertRaises(ft.FtError) as caught:
            self.session.run({"input_ids": IDS}, ["missing"])
        self.assertIn("missing", str(caught.exception))

    def test_a_session_keeps_its_model_open(self):
        session = ft.Model.open(support.generated("classifier")).session()
        self.assertEqual(session.run({"input_ids": IDS})["logits"].shape, (2, 3))

    def test_a_model_is_closed_after_its_last_session(self):
        program = ("import sys, ftruntime as ft\n"
                   "for _ in range(20):\n"
                   "    session = ft.Model.open(sys.argv[1]).session()\n"
                   "    del session\n")
        # Freed memory is overwritten, so that its use crashes.
        done = subprocess.run([sys.executable, "-c", program, support.generated("classifier")],
                              env=dict(os.environ, MALLOC_PERTURB_="165"))
        self.assertEqual(done.returncode, 0)


class Threads(unittest.TestCase):
    def test_threads_with_a_session_each_get_the_same_rows(self):
        model = ft.Model.open(support.generated("classifier"), threads=1)
        expected = model.session().run({"input_ids": IDS})["logits"].tolist()
        found = []

        def work():
            session = model.session()
            for _ in range(50):
                found.append(session.run({"input_ids": IDS})["logits"].tolist())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 200)

    def goes_on(self, session, rows):
        """Whether this thread ran while another was in the middle of a call."""
        times, ticks = [], []

        def work():
            times.append(time.monotonic())
            session.run({"input_ids": rows})
            times.append(time.monotonic())

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        thread.join()
        # The single call takes most of that time; with the GIL held, no tick could be inside.
        begin, end = times
        quarter = (end - begin) / 4
        return any(begin + quarter < tick < end - quarter for tick in ticks)

    def test_python_goes_on_during_a_call(self):
        model = ft.Model.open(support.generated("decoder"), threads=1)
        rows = np.full((8, 2048), 97, "int32")
        session = model.session(max_tokens=rows.size, context=2048, cache_tokens=2 * rows.size)
        # On a busy machine, this thread may get no time during a call.
        self.assertTrue(any(self.goes_on(session, rows) for _ in range(50)))


if __name__ == "__main__":
    unittest.main()
