"""A server in its own process, which ends with the test in every case.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import httpx

import support

LONG = 60  # seconds: longer than any test, but a hanging one ends
ENDLESS = {"max_tokens": 4000, "ignore_eos": True}  # about two seconds


class Process:
    """python -m ftruntime.serve at a free port; a context manager."""

    def __init__(self, *arguments, models=("decoder",), environment=None):
        self.http = None
        self._log = tempfile.TemporaryFile()
        self.command = [sys.executable, "-m", "ftruntime.serve", "--port", "0", *arguments,
                        *(support.generated(name) for name in models)]
        self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=self._log,
                                         env=dict(os.environ, **(environment or {})))

    def __enter__(self):
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self.__exit__()
            raise
        self.port = int(self.url.rpartition(":")[2])
        self.http = httpx.Client(base_url=self.url, timeout=LONG, trust_env=False)
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._log.close()
        if self.http is not None:
            self.http.close()

    def _wait_for_url(self):
        until = time.monotonic() + LONG
        while time.monotonic() < until and self._process.poll() is None:
            found = re.search(r"http://\S+", self.log())
            if found is not None:
                return found.group()
            time.sleep(0.02)
        raise AssertionError("the server has not started: " + self.log())

    def log(self):
        """All that it has written to its standard error."""
        self._log.seek(0)
        return self._log.read().decode()

    def terminate(self):
        self._process.send_signal(signal.SIGTERM)

    def wait(self):
        """Its exit status."""
        return self._process.wait(LONG)

    def stats(self, name="decoder"):
        """The state of the engine of a model, from /metrics."""
        text = self.http.get("/metrics").text
        found = re.findall(rf'^ftruntime_engine_(\w+){{model="{name}"}} (\d+)$', text, re.MULTILINE)
        return {member.replace("_total", ""): int(value) for member, value in found}

    def in_progress(self):
        """The requests that run, besides this one."""
        found = re.search(r"^ftruntime_requests_in_progress (\d+)$",
                          self.http.get("/metrics").text, re.MULTILINE)
        return int(found.group(1)) - 1

    def wait_until_idle(self):
        until = time.monotonic() + LONG
        while self.in_progress() > 0:
            if time.monotonic() > until:
                raise AssertionError("a request does not end")
            time.sleep(0.02)

    def wait_for(self, name, value):
        """Wait until a member of stats() is at least so large."""
        until = time.monotonic() + LONG
        while self.stats()[name] < value:
            if time.monotonic() > until:
                raise AssertionError(f"{name} is {self.stats()[name]}, expected {value}")
            time.sleep(0.02)

    @contextlib.contextmanager
    def connect(self):
        """A bare connection."""
        with socket.create_connection(("127.0.0.1", self.port), LONG) as connection:
            yield connection


def chat(text="a", **members):
    """The body of a request for a chat."""
    return dict({"model": "decoder", "messages": [{"role": "user", "content": text}]}, **members)


def head(length=None, path="/v1/chat/completions", more=""):
    """The head of a request, as bytes."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"{more}{size}\r\n\r\n").encode()


def read_all(connection):
    """What comes until the server closes the connection."""
    data = b""
    while True:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
