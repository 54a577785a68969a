"""Engines give what models alone give, and end in order.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import ftruntime as ft
import support
from ftruntime._streams import Stream

ENDLESS = {"max_new_tokens": 4000, "stop_ids": []}
LONG = 60  # seconds: longer than any test, but a hanging one ends


def open_decoder():
    return ft.Model.open(support.generated("decoder"))


def alone(model, prompt, **options):
    return model.generate(prompt, **options)[0]


def in_loop(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, LONG))


class Callbacks(unittest.TestCase):
    def setUp(self):
        self.model = open_decoder()
        self.engine = self.model.engine()
        self.ended = threading.Event()
        self.failure = None

    def tearDown(self):
        self.engine.close()

    def end(self, failure):
        self.failure = failure
        self.ended.set()

    def test_a_request_gets_its_tokens_and_then_its_end(self):
        tokens = []
        id = self.engine.submit("def add", tokens.append, self.end, max_new_tokens=8)
        self.assertTrue(self.ended.wait(LONG))
        self.assertIsNone(self.failure)
        self.assertEqual({token.request for token in tokens}, {id})
        self.assertEqual([token.id for token in tokens],
                         alone(self.model, "def add", max_new_tokens=8).ids)

    def test_false_from_a_callback_cancels_its_request(self):
        self.engine.submit("a", lambda token: False, self.end, **ENDLESS)
        self.assertTrue(self.ended.wait(LONG))
        self.assertEqual(self.failure.status, "FT_ECANCELLED")

    def test_an_exception_of_a_callback_ends_its_request(self):
        def fail(token):
            raise ValueError("mine")

        self.engine.submit("a", fail, self.end, **ENDLESS)
        self.assertTrue(self.ended.wait(LONG))
        self.assertEqual(repr(self.failure), "ValueError('mine')")

    def test_another_thread_cancels_a_request(self):
        began = threading.Event()
        id = self.engine.submit("a", lambda token: began.set(), self.end, **ENDLESS)
        self.assertTrue(began.wait(LONG))
        self.engine.cancel(id)
        self.assertTrue(self.engine.drain(LONG))
        self.assertEqual(self.failure.status, "FT_ECANCELLED")
        self.assertEqual(self.engine.stats().cancelled, 1)

    def test_a_callback_may_submit_but_not_close_or_drain(self):
        failures, second = [], threading.Event()

        def first_end(failure):
            self.engine.submit("b", None, lambda failure: second.set(), max_new_tokens=1)
            for forbidden in (self.engine.close, self.engine.drain):
                try:
                    forbidden()
                except ft.FtError as error:
                    failures.append(error.status)

        self.engine.submit("a", None, first_end, max_new_tokens=1)
        self.assertTrue(second.wait(LONG))
        self.assertEqual(failures, ["FT_EARG", "FT_EARG"])

    def test_invalid_requests_raise(self):
        for prompt, options, status in (
                ("a", {"timeout": 0}, "FT_EARG"), ([100000], {}, "FT_EARG"),
                ([1] * 5000, {}, "FT_ELIMIT")):
            with self.assertRaises(ft.FtError) as caught:
                self.engine.submit(prompt, **options)
            self.assertEqual(caught.exception.status, status)
        with self.assertRaises(TypeError):
            self.engine.submit("a", temprature=1)
        with self.assertRaises(TypeError):
            self.model.engine(sequences=1)

    def test_a_full_queue_raises_ft_elimit(self):
        with self.model.engine(max_sequences=1, queue=1) as engine:
            with self.assertRaises(ft.FtError) as caught:
                for _ in range(3):
                    engine.submit("a", **ENDLESS)
        self.assertEqual(caught.exception.status, "FT_ELIMIT")

    def test_a_request_with_a_higher_priority_starts_earlier(self):
        ends, began, go_on = [], threading.Event(), threading.Event()

        def hold(token):
            began.set()
            go_on.wait(LONG)

        with self.model.engine(max_sequences=1) as engine:
            engine.submit("a", hold, max_new_tokens=2, stop_ids=[])
            self.assertTrue(began.wait(LONG))
            for priority in (0, 2, 1):
                engine.submit("b", None, lambda failure, priority=priority: ends.append(priority),
                              priority=priority, max_new_tokens=1)
            go_on.set()
            self.assertTrue(engine.drain(LONG))
        self.assertEqual(ends, [2, 1, 0])

    def test_a_closed_engine_refuses_requests(self):
        self.engine.submit("a", None, self.end, **ENDLESS)
        self.engine.close()
        self.assertEqual(self.failure.status, "FT_ECANCELLED")
        self.engine.close()
        for call in (self.engine.stats, lambda: self.engine.submit("a")):
            with self.assertRaises(ft.FtError) as caught:
                call()
            self.assertIn("closed", str(caught.exception))

    def test_drain_waits_for_all_requests(self):
        self.assertTrue(self.engine.drain())
        self.engine.submit("a", None, self.end, **ENDLESS)
        self.assertFalse(self.engine.drain(timeout=0.01))
        self.assertTrue(self.engine.drain(timeout=LONG))
        self.assertTrue(self.ended.is_set())

    def test_many_threads_get_what_they_get_alone(self):
        found = [None] * 16

        def work(i):
            tokens = list(self.engine.stream("def f", max_new_tokens=12, temperature=1.0, seed=i))
            found[i] = [token.id for token in tokens]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        self.assertEqual(found, [
            alone(self.model, "def f", max_new_tokens=12, temperature=1.0, seed=i).ids
            for i in range(len(found))])

    def test_closing_an_iterator_cancels_its_request(self):
        stream = self.engine.stream("a", **ENDLESS)
        next(stream)
        stream.close()
        self.assertTrue(self.engine.drain(LONG))
        self.assertEqual(self.engine.stats().cancelled, 1)

    def test_a_forward_pass_is_that_of_a_session(self):
        model = ft.Model.open(support.generated("classifier"))
        inputs = {"input_ids": [[1, 2, 3]]}
        found = {}
        with model.engine() as engine:
            engine.submit_arrays(inputs, ["logits"], found.update, self.end)
            self.assertTrue(self.ended.wait(LONG))
        expected = model.session().run(inputs)["logits"]
        self.assertEqual(found["logits"].tolist(), expected.tolist())


class Asyncio(unittest.TestCase):
    def setUp(self):
        self.model = open_decoder()
        self.engine = self.model.engine()

    def tearDown(self):
        self.engine.close()

    def test_a_stream_has_the_tokens_of_the_model_alone(self):
        async def read():
            return [token.id async for token in self.engine.generate("ab", max_new_tokens=20)]

        self.assertEqual(in_loop(read()), alone(self.model, "ab", max_new_tokens=20).ids)

    def test_tasks_together_get_what_they_get_alone(self):
        async def all_texts():
            return await asyncio.gather(*(
                self.engine.complete("def f", max_new_tokens=12, temperature=1.0, seed=i)
                for i in range(32)))

        self.assertEqual(in_loop(all_texts()), [
            alone(self.model, "def f", max_new_tokens=12, temperature=1.0, seed=i)
            for i in range(32)])

    def test_a_cancelled_stream_raises(self):
        async def read():
            stream = self.engine.generate("a", **ENDLESS)
            async for _ in stream:
                stream.cancel()

        with self.assertRaises(ft.FtError) as caught:
            in_loop(read())
        self.assertEqual(caught.exception.status, "FT_ECANCELLED")

    def test_a_dropped_stream_is_cancelled(self):
        async def read():
            async for _ in self.engine.generate("a", **ENDLESS):
                break

        in_loop(read())
        self.assertTrue(self.engine.drain(LONG))
        self.assertEqual(self.engine.stats().cancelled, 1)

    def test_a_dropped_stream_no_longer_waits(self):
        async def read(engine):
            first = engine.generate("a", **ENDLESS)
            await first.take()
            second = engine.generate("b", **ENDLESS)
            del second
            async for _ in first:
                stats = engine.stats()
                if stats.cancelled == 1:
                    return stats.finished
            self.fail("the second stream waits for the first")

        with self.model.engine(max_sequences=1) as engine:
            self.assertEqual(in_loop(read(engine)), 0)

    def test_a_cancelled_task_cancels_its_request(self):
        async def read():
            task = asyncio.ensure_future(self.engine.complete("a", **ENDLESS))
            while self.engine.stats().running == 0:
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        in_loop(read())
        self.assertTrue(self.engine.drain(LONG))
        self.assertEqual(self.engine.stats().cancelled, 1)

    def test_a_late_request_raises(self):
        with self.assertRaises(ft.FtError) as caught:
            in_loop(self.engine.complete("a", timeout=0.02, **ENDLESS))
        self.assertEqual(caught.exception.status, "FT_ETIMEOUT")

    def test_a_reader_that_is_too_slow_loses_its_request(self):
        async def read():
            stream = self.engine.generate("a", most_unread=4, **ENDLESS)
            while self.engine.stats().cancelled == 0:
                await asyncio.sleep(0.01)
            return [token async for token in stream]

        with self.assertRaises(ft.FtError) as caught:
            in_loop(read())
        self.assertEqual(str(caught.exception), "the reader is 4 tokens behind")

    def test_a_loop_that_is_closed_cancels_its_requests(self):
        async def begin():
            self.stream = self.engine.generate("a", **ENDLESS)
            await self.stream.take()

        in_loop(begin())
        self.assertTrue(self.engine.drain(LONG))
        self.assertEqual(self.engine.stats().finished, 0)

    def test_a_stream_of_a_closed_loop_takes_no_token(self):
        loop = asyncio.new_event_loop()
        stream = Stream(self.engine, loop, 0)
        self.assertTrue(stream.put("first"))  # the loop has not been told of this token
        loop.close()
        self.assertFalse(stream.put("second"))
        stream.end(None)

    def test_embeddings_are_those_of_the_model(self):
        model = ft.Model.open(support.generated("embedder"))
        texts = ["a b", "c"] * 40

        async def embed(engine):
            return await asyncio.gather(engine.embed(texts), engine.embed(texts[:3], dim=4))

        with model.engine(max_sequences=8) as engine:
            whole, cut = in_loop(embed(engine))
        self.assertEqual(whole.tolist(), model.embed(texts).tolist())
        self.assertEqual(cut.tolist(), model.embed(texts[:3], dim=4).tolist())

    def test_classes_are_those_of_the_model(self):
        model = ft.Model.open(support.generated("classifier"))
        with model.engine() as engine:
            found = in_loop(engine.classify(["a b", ("c", "d")]))
            scores = in_loop(engine.rerank("a", ["b", "c d"]))
        self.assertEqual(found, model.classify(["a b", ("c", "d")]))
        self.assertEqual(scores.tolist(), model.rerank("a", ["b", "c d"]).tolist())


class Ends(unittest.TestCase):
    """Programs that end, or drop an engine, while it computes."""

    def assert_ends(self, program, status=0):
        source = "import sys, ftruntime as ft\nmodel = ft.Model.open(sys.argv[1])\n" + program
        # Python 3.12 and later warn of os.fork() where there are threads.
        command = [sys.executable, "-Wignore::DeprecationWarning", "-c", source,
                   support.generated("decoder")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LONG)
        self.assertEqual((done.returncode, done.stderr), (status, b""))
        return done.stdout

    def test_a_program_may_end_with_an_open_engine(self):
        self.assert_ends("engine = model.engine()\n")

    def test_a_program_may_end_while_requests_run(self):
        ends = self.assert_ends(
            "engine = model.engine()\n"
            "for i in range(8):\n"
            "    engine.submit('a', lambda token: None, lambda failure: print(failure.status),\n"
            "                  max_new_tokens=4000, stop_ids=[])\n")
        self.assertEqual(ends, b"FT_ECANCELLED\n" * 8)

    def test_a_program_may_end_by_an_exception_in_asyncio(self):
        self.assert_ends(
            "import asyncio\n"
            "engine = model.engine()\n"
            "async def main():\n"
            "    async for token in engine.generate('a', max_new_tokens=4000, stop_ids=[]):\n"
            "        sys.exit(7)\n"
            "asyncio.run(main())\n", 7)

    def test_a_child_may_end_without_the_engines_of_its_parent(self):
        out = self.assert_ends(
            "import os\n"
            "engine = model.engine()\n"
            "engine.submit('a', max_new_tokens=4000, stop_ids=[])\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try:\n"
            "        engine.stats()\n"
            "    except ft.FtError as failure:\n"
            "        print(failure)\n"
            "    sys.exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "engine.stats()\n")
        self.assertEqual(out, b"the engine is closed\n")

    def test_an_engine_without_a_reference_is_closed(self):
        engine = open_decoder().engine()
        reference = weakref.ref(engine)
        del engine
        gc.collect()
        self.assertIsNone(reference())

    def test_a_request_keeps_its_engine_until_its_end(self):
        failures, ended = [], threading.Event()
        threads = len(os.listdir("/proc/self/task"))

        def end(failure):
            failures.append(failure)
            ended.set()

        open_decoder().engine().submit("a", None, end, max_new_tokens=500, stop_ids=[])
        gc.collect()
        self.assertTrue(ended.wait(LONG))
        self.assertEqual(failures, [None])
        until = time.monotonic() + LONG
        while len(os.listdir("/proc/self/task")) > threads and time.monotonic() < until:
            time.sleep(0.01)
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads)

    def test_a_request_leaves_no_garbage(self):
        with open_decoder().engine() as engine:
            list(engine.stream("a", max_new_tokens=1))
            engine.drain()
            gc.collect()
            list(engine.stream("a", max_new_tokens=2))
            engine.drain()
            self.assertEqual(gc.collect(), 0)

    def test_import_loads_no_asyncio_and_no_server(self):
        program = ("import sys, ftruntime; sys.exit(any(m in sys.modules for m in "
                   "('asyncio', 'threading', 'starlette', 'ftruntime.engine')))")
        self.assertEqual(subprocess.run([sys.executable, "-c", program]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
