"""SIGTERM lets what runs end, and ends the server.

SPDX-License-Identifier: Apache-2.0
"""
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import unittest

import ftruntime as ft
import httpx
import uvicorn
from ftruntime.serve import create_app
from ftruntime.serve.server import Server
from starlette.testclient import TestClient

import support
from process import ENDLESS, LONG, Process, chat


def read_stream(server, began, n):
    """All data of a stream that has endless choices."""
    with server.http.stream("POST", "/v1/chat/completions",
                            json=chat(stream=True, n=n, **ENDLESS)) as found:
        lines = []
        try:
            for line in found.iter_lines():
                began.set()
                lines.append(line)
        except httpx.TransportError:
            lines.append("broken")
    return [line for line in lines if line]


class Shutdown(unittest.TestCase):
    def begin(self, *arguments, n=1):
        """A server, and a stream that runs there in a thread."""
        self.addCleanup(lambda: self.thread.join(LONG))
        self.server = self.enterContext(Process(*arguments))
        self.lines, began = [], threading.Event()

        def work():
            self.lines += read_stream(self.server, began, n)

        self.thread = threading.Thread(target=work)
        self.thread.start()
        self.assertTrue(began.wait(LONG))

    def test_a_running_stream_is_finished(self):
        self.begin("--drain-timeout", "50", n=2)
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0)
        self.thread.join(LONG)
        self.assertEqual(self.lines[-1], "data: [DONE]")
        reasons = [json.loads(line[6:])["choices"][0]["finish_reason"]
                   for line in self.lines[:-1]]
        self.assertEqual(reasons.count("length"), 2)

    def test_new_requests_are_refused_while_the_server_drains(self):
        self.begin("--drain-timeout", "50", n=8)
        with self.server.connect():
            self.server.terminate()
            until = time.monotonic() + LONG
            while True:
                self.assertLess(time.monotonic(), until)
                try:
                    socket.create_connection(("127.0.0.1", self.server.port), LONG).close()
                except ConnectionRefusedError:
                    break
                time.sleep(0.01)
        self.assertTrue(self.thread.is_alive())

    def test_a_signal_begins_to_drain_at_once(self):
        service = types.SimpleNamespace(draining=False)
        server = Server(uvicorn.Config(None), service, None)
        server.handle_exit(signal.SIGTERM, None)
        self.assertTrue(service.draining)
        self.assertTrue(server.should_exit)

    def test_requests_of_open_connections_are_told_that_the_server_drains(self):
        app = create_app({"decoder": ft.Model.open(support.generated("decoder"))})
        with TestClient(app, base_url="http://localhost") as client:
            self.assertEqual(client.get("/health").status_code, 200)
            app.state.service.draining = True
            self.assertEqual(client.get("/health").json(), {"status": "draining"})
            for found in (client.get("/health"), client.post("/v1/completions", json={})):
                self.assertEqual(found.status_code, 503)
        self.assertEqual(found.headers["Retry-After"], "5")
        self.assertEqual(found.json()["error"]["code"], "draining")

    def test_the_time_for_draining_is_bounded(self):
        self.begin("--drain-timeout", "0.2", n=32)
        since = time.monotonic()
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0)
        self.assertLess(time.monotonic() - since, 5)
        self.thread.join(LONG)
        self.assertEqual(self.lines[-1], "broken")
        self.assertNotIn("Traceback", self.server.log())

    def test_a_server_without_requests_ends_at_once(self):
        with Process() as server:
            server.http.get("/health")  # its connection stays open
            server.terminate()
            self.assertEqual(server.wait(), 0)


    def test_a_log_that_cannot_be_written_ends_no_server(self):
        with Process() as server, open("/dev/full", "w") as full:
            command = [*server.command[:-1], "--port", str(server.port), server.command[-1]]
            server.terminate()
            self.assertEqual(server.wait(), 0)
            with subprocess.Popen(command, stderr=full) as second:
                self.addCleanup(second.kill)
                self.assertEqual(self.wait_for_health(server), 200)
                second.terminate()
                self.assertEqual(second.wait(LONG), 0)

    def wait_for_health(self, server):
        until = time.monotonic() + LONG
        while True:
            self.assertLess(time.monotonic(), until)
            try:
                return server.http.get("/health").status_code
            except httpx.ConnectError:
                time.sleep(0.05)


class Starts(unittest.TestCase):
    def fail(self, *arguments):
        command = [sys.executable, "-m", "ftruntime.serve", *arguments]
        done = subprocess.run(command, stderr=subprocess.PIPE, timeout=LONG,
                              universal_newlines=True)
        return done.returncode, done.stderr

    def test_a_missing_model_is_told(self):
        status, message = self.fail("--port", "0", "/missing.ft")
        self.assertEqual(status, 1)
        self.assertTrue(message.startswith("ftruntime.serve: /missing.ft: "), message)

    def test_a_model_that_answers_nothing_is_told(self):
        status, message = self.fail("--port", "0", support.generated("tokens"))
        self.assertEqual(status, 1)
        self.assertIn("answers no request of this server", message)

    def test_a_port_in_use_is_told(self):
        with socket.socket() as used:
            used.bind(("127.0.0.1", 0))
            used.listen()
            status, message = self.fail("--port", str(used.getsockname()[1]),
                                        support.generated("decoder"))
        self.assertEqual(status, 1)
        self.assertIn("in use", message)

    def test_missing_packages_are_told(self):
        program = ("import sys; sys.modules['starlette'] = None\n"
                   "from ftruntime.serve.main import main; sys.exit(main(['model.ft']))")
        done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=LONG)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install ftruntime[serve]", done.stderr)


if __name__ == "__main__":
    unittest.main()
