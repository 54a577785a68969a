"""Clients that ask again after a failure, and compare all that they get with the model alone.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import functools
import itertools
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import ftruntime as ft
import support
from client import Broken, Unavailable, ask
from process import LONG


@functools.lru_cache(maxsize=None)
def alone(content, tokens):
    """The answer that a model gives to one message alone."""
    model = ft.Model.open(support.generated("decoder"))
    return model.chat([{"role": "user", "content": content}], max_new_tokens=tokens).text


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, message):
    last = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > last:
            raise AssertionError(message)
        time.sleep(0.01)


@contextlib.contextmanager
def running(clients):
    """Threads of clients that have had answers and get more; the block ends their questions."""
    enough = threading.Event()
    with ThreadPoolExecutor(len(clients)) as threads:
        runs = [threads.submit(client.run, enough) for client in clients]
        try:
            wait_for(lambda: all(client.answers > 0 and client.part for client in clients),
                     "no answers come")
            yield
        finally:
            enough.set()
        for run in runs:
            run.result()


class Client:
    """Asks until an answer is complete, and counts what was lost."""

    def __init__(self, port, number, questions, tokens):
        self.port = port
        self.number = number
        self.questions = questions
        self.tokens = tokens
        self.answers = 0  # that are complete
        self.part = ""  # of the answer that comes now
        self.lost = []  # parts of answers that broke off
        self.wrong = []

    def texts(self):
        return [f"question {i} of client {self.number}" for i in range(self.questions)]

    def prepare(self):
        """Compute what is expected, so that run() has nothing to compute."""
        for question in self.texts():
            alone(question, self.tokens)

    def run(self, enough):
        """Ask one question after the other until the event is set, and its last one is answered."""
        for question in itertools.cycle(self.texts()):
            wait_for(lambda: self.completes(question), "no answer is complete")
            self.part = ""
            if enough.is_set():
                return

    def completes(self, question):
        """Ask once; whether that brought an answer, right or wrong."""
        expected = alone(question, self.tokens)
        self.part = ""

        def add(piece):
            self.part += piece

        try:
            text = ask(self.port, question, self.tokens, add)
        except (Broken, Unavailable):
            if self.part:
                self.lost.append(self.part)
            if not expected.startswith(self.part):
                self.wrong.append((expected, self.part))
            return False
        if text != expected:
            self.wrong.append((expected, text))
        self.answers += 1
        return True
