"""Calls reuse sessions: few are opened, a call has one for itself, and those that wait are bounded.

SPDX-License-Identifier: Apache-2.0
"""
import threading
import unittest
from unittest import mock

import ftruntime as ft
import support
from ftruntime import _session_pool

TEXTS = ["a", "a b", "a b c", "a b c d", "a b c d e f g"]


class SessionPool(unittest.TestCase):
    def opened(self, function):
        """The number of sessions that a function opens."""
        with mock.patch.object(_session_pool, "Kept", wraps=_session_pool.Kept) as kept:
            function()
        return kept.call_count

    def test_calls_of_similar_sizes_share_sessions(self):
        model = ft.Model.open(support.generated("classifier"))
        self.assertEqual(self.opened(lambda: model.classify("a b c d")), 1)
        self.assertEqual(self.opened(lambda: [model.classify(t) for t in TEXTS[:4] * 5]), 0)
        self.assertEqual(self.opened(lambda: [model.classify(TEXTS) for _ in range(5)]), 1)

    def test_generation_shares_sessions_without_changing_texts(self):
        model = ft.Model.open(support.generated("decoder"))
        expected = [ft.Model.open(model.path).generate(t, max_new_tokens=8) for t in TEXTS]
        model.generate(TEXTS[-1], max_new_tokens=8)
        found = []
        self.assertEqual(self.opened(lambda: found.extend(
            model.generate(t, max_new_tokens=8) for t in TEXTS)), 0)
        self.assertEqual(found, expected)

    def test_a_text_without_a_limit_has_a_context_of_its_own(self):
        model = ft.Model.open(support.generated("decoder"))
        first = model.generate("a", max_new_tokens=1, stop_ids=[])[0].ids  # ends the texts below
        model.generate("a", max_new_tokens=6000, stop_ids=first)
        self.assertEqual(self.opened(lambda: model.generate("a", stop_ids=first)), 1)
        self.assertEqual(self.opened(lambda: model.generate("a", stop_ids=first)), 0)

    def test_threads_at_once_get_the_rows_of_their_own_texts(self):
        model = ft.Model.open(support.generated("classifier"), threads=1)
        expected = {text: model.classify(text) for text in TEXTS}
        wrong = []

        def work(text):
            for _ in range(50):
                if model.classify(text) != expected[text]:
                    wrong.append(text)

        threads = [threading.Thread(target=work, args=(text,)) for text in TEXTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_sessions_that_wait_are_bounded(self):
        model = ft.Model.open(support.generated("decoder"))
        pool, generated = model._sessions, (40, 100, 190, 1000)
        with mock.patch.object(_session_pool, "IDLE_BYTES", 2500 << 10):
            for tokens in generated:
                model.generate(["a"] * 8, max_new_tokens=tokens, stop_ids=[])
        waiting = [kept.bytes for kept in pool._idle]
        self.assertTrue(0 < len(waiting) < len(generated))
        self.assertLessEqual(sum(waiting), 2500 << 10)

    def test_a_session_of_a_call_that_failed_is_not_used_again(self):
        model = ft.Model.open(support.generated("decoder"))
        with self.assertRaises(ft.FtError):
            model.generate([[100000]], max_new_tokens=1)
        self.assertEqual(model._sessions._idle, [])


if __name__ == "__main__":
    unittest.main()
