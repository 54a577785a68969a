"""Limits of size, number and time, and clients that go away or do not read.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import contextlib
import json
import socket
import time
import unittest

import ftruntime as ft
from ftruntime.serve import Settings, create_app
from ftruntime.serve.choices import Choices
from ftruntime.serve.sampling import Sampling
from starlette.testclient import TestClient

import support
from process import ENDLESS, LONG, Process, chat, head, read_all


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Process(
            "--max-body", "4096", "--max-messages", "3", "--max-inputs", "2", "--max-tokens", "50",
            "--read-timeout", "0.5", "--max-sequences", "2", "--queue", "2",
            models=("decoder", "embedder")))

    def assert_refused(self, status, code, body, path="/v1/chat/completions"):
        found = self.server.http.post(path, json=body)
        self.assertEqual((found.status_code, found.json()["error"]["code"]), (status, code))
        return found.json()["error"]["message"]

    def test_a_long_body_is_refused_by_its_length_before_it_comes(self):
        with self.server.connect() as connection:
            connection.sendall(head(5000))
            answer = read_all(connection)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        self.assertIn(b"larger than 4096 bytes", answer)

    def test_a_long_body_without_a_length_is_refused_while_it_comes(self):
        chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
        with self.server.connect() as connection:
            connection.sendall(head() + chunk * 5)
            answer = read_all(connection)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)

    def test_a_slow_body_is_refused(self):
        with self.server.connect() as connection:
            connection.sendall(head(100) + b"{")
            answer = read_all(connection)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"did not arrive within 0.5 s", answer)

    def test_a_slow_head_ends_the_connection(self):
        for part in (b"", b"POST /v1/chat"):
            with self.server.connect() as connection:
                connection.sendall(part)
                try:
                    self.assertEqual(read_all(connection), b"")
                except ConnectionResetError:
                    pass

    def test_too_many_messages_are_refused(self):
        body = chat(max_tokens=1)
        body["messages"] *= 4
        self.assertIn("found 4 messages, expected at most 3",
                      self.assert_refused(413, "too_many", body))

    def test_too_many_texts_are_refused(self):
        self.assert_refused(413, "too_many", {"model": "embedder", "input": ["a"] * 3},
                            "/v1/embeddings")
        self.assert_refused(413, "too_many", {"model": "decoder", "prompt": ["a"] * 3},
                            "/v1/completions")

    def test_too_many_new_tokens_are_refused(self):
        self.assertIn("found 51, expected an integer from 1 to 50",
                      self.assert_refused(400, "invalid_value", chat(max_tokens=51)))

    def test_an_answer_ends_at_the_limit_of_new_tokens(self):
        found = self.server.http.post("/v1/chat/completions", json=chat(ignore_eos=True)).json()
        self.assertEqual(found["usage"]["completion_tokens"], 50)
        self.assertEqual(found["choices"][0]["finish_reason"], "length")

    def test_more_choices_than_places_are_refused(self):
        self.assert_refused(400, "too_many_choices", chat(n=5))

    def test_a_long_text_is_refused_or_truncated(self):
        body = {"model": "embedder", "input": "a " * 200}
        message = self.assert_refused(400, "context_length_exceeded", body, "/v1/embeddings")
        self.assertIn("embedder", "embedder" + message)
        found = self.server.http.post("/v1/embeddings", json=dict(body, truncate=True))
        self.assertEqual(found.status_code, 200)

    def test_what_is_no_json_is_refused(self):
        for data in (b"", b"{", b"[" * 4000, b'{"seed": NaN}', b'{"n": 1' + b"0" * 4000,
                     b"\xff\xfe", b'{"messages": [{"role": "user", "content": "\xff"}]}'):
            found = self.server.http.post("/v1/chat/completions", content=data,
                                          headers={"Content-Type": "application/json"})
            self.assertEqual((found.status_code, found.json()["error"]["code"]),
                             (400, "invalid_json"), data[:20])

    def test_halves_of_surrogate_pairs_are_refused(self):
        data = json.dumps(chat("\ud800")).encode()
        found = self.server.http.post("/v1/chat/completions", content=data,
                                      headers={"Content-Type": "application/json"})
        self.assertEqual(found.status_code, 400)
        self.assertIn("half of a surrogate pair", found.text)

    def test_paths_and_methods_that_are_not_served_are_told(self):
        self.assertEqual(self.server.http.get("/v1/other").status_code, 404)
        self.assertEqual(self.server.http.get("/v1/completions").status_code, 405)


class Texts(unittest.TestCase):
    def test_a_text_without_a_token_has_no_embedding(self):
        model = ft.Model.open(support.generated("decoder"), embed=True)
        with TestClient(create_app({"decoder": model}), base_url="http://localhost") as client:
            found = client.post("/v1/embeddings", json={"input": ["a", ""]})
        self.assertEqual(found.status_code, 400)
        self.assertIn("input[1]: found a text without a token", found.text)


class Places(unittest.TestCase):
    def test_every_endpoint_is_refused_while_all_places_are_taken(self):
        models = {name: ft.Model.open(support.generated(name))
                  for name in ("decoder", "embedder", "classifier")}
        app = create_app(models, Settings(max_sequences=1, queue=0))
        bodies = {
            "/v1/chat/completions": chat(),
            "/v1/completions": {"model": "decoder", "prompt": "a", "stream": True},
            "/v1/embeddings": {"model": "embedder", "input": "a"},
            "/v1/rerank": {"model": "classifier", "query": "a", "documents": ["b"]},
        }
        with TestClient(app, base_url="http://localhost") as client:
            for path, body in bodies.items():
                with app.state.service.models.get(body["model"]).places.take():
                    found = client.post(path, json=body)
                self.assertEqual((found.status_code, found.headers["Retry-After"]), (429, "1"))
                self.assertEqual(client.post(path, json=body).status_code, 200)


    def test_streams_that_are_dropped_give_their_places_back(self):
        app = create_app({"decoder": ft.Model.open(support.generated("decoder"))})
        served = app.state.service.models.get("decoder")
        sampling = Sampling(n=3, stream=True, include_usage=False, seed=1, options={})
        choices = Choices(served, [[1]], sampling, app.state.service.metrics)

        async def begin_and_drop():
            streams = choices.start(0)
            self.assertEqual((len(streams), served.places.taken), (3, 3))

        asyncio.run(begin_and_drop())
        self.assertEqual(served.places.taken, 0)
        served.engine.close()


class Times(unittest.TestCase):
    """A request ends when its time is over or its client is gone."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Process("--request-timeout", "1"))

    def test_a_late_answer_is_a_408(self):
        found = self.server.http.post("/v1/chat/completions", json=chat(n=8, **ENDLESS))
        self.assertEqual((found.status_code, found.json()["error"]["code"]), (408, "timeout"))

    def test_a_late_stream_ends_with_an_error_and_without_done(self):
        found = self.server.http.post("/v1/chat/completions",
                                      json=chat(n=8, stream=True, **ENDLESS))
        events = found.text.strip().split("\n\n")
        self.assertEqual(found.status_code, 200)
        self.assertEqual(json.loads(events[-1][len("data: "):])["error"]["code"], "timeout")


class Clients(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Process("--write-timeout", "1"))

    def test_a_stream_without_its_client_is_cancelled(self):
        with self.server.http.stream("POST", "/v1/chat/completions",
                                     json=chat(stream=True, **ENDLESS)) as found:
            next(found.iter_lines())
        self.server.wait_for("cancelled", 1)
        self.assertEqual(self.server.stats()["running"], 0)

    def test_an_answer_without_its_client_is_cancelled(self):
        data = json.dumps(chat(**ENDLESS)).encode()
        with self.server.connect() as connection:
            connection.sendall(head(len(data)) + data)
            self.server.wait_for("running", 1)
        self.server.wait_for("cancelled", 1)
        self.assertEqual(self.server.stats()["running"], 0)

    def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_error(self):
        with self.server.connect() as connection:
            connection.sendall(head(100) + b"{")
            while self.server.in_progress() == 0:
                time.sleep(0.01)
        self.server.wait_until_idle()
        self.assertIn("/v1/chat/completions 499", self.server.log())
        self.assertNotIn("ERROR", self.server.log())

    def test_a_client_that_does_not_read_is_disconnected_and_blocks_no_other(self):
        with unread_stream(self.server) as connection:
            found = self.server.http.post("/v1/chat/completions", json=chat(max_tokens=20))
            self.assertEqual(found.status_code, 200)
            self.server.wait_until_idle()
            with self.assertRaises(ConnectionResetError):
                read_all(connection)
        found = self.server.http.post("/v1/chat/completions", json=chat(max_tokens=20))
        self.assertEqual(found.status_code, 200)

    def test_tokens_that_wait_for_their_client_are_bounded(self):
        with Process("--unread-tokens", "64") as server, unread_stream(server):
            server.wait_for("cancelled", 1)


@contextlib.contextmanager
def unread_stream(server):
    """A connection whose buffers are too small for its answer, and which reads nothing."""
    body = chat(stream=True, n=8, logprobs=True, **ENDLESS)
    data = json.dumps(body).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONG)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(head(len(data)) + data)
        yield connection


if __name__ == "__main__":
    unittest.main()
