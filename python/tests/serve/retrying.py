"""Clients that ask again after a failure, and compare all that they get with the model alone.

SPDX-License-Identifier: Apache-2.0
"""
import functools
import time

import ftruntime as ft
import support
from client import Broken, Unavailable, ask

SECONDS = 60  # after which something has gone wrong


@functools.lru_cache(maxsize=None)
def alone(content, tokens):
    """The answer that a model gives to one message alone."""
    model = ft.Model.open(support.generated("decoder"))
    return model.chat([{"role": "user", "content": content}], max_new_tokens=tokens).text


def wait_for(condition, message):
    last = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > last:
            raise AssertionError(message)
        time.sleep(0.01)


class Client:
    """Asks until each answer is complete, and counts what was lost."""

    def __init__(self, server, number, questions, tokens):
        self.server = server
        self.number = number
        self.questions = questions
        self.tokens = tokens
        self.part = ""  # of the answer that comes now
        self.lost = []  # parts of answers that broke off
        self.wrong = []

    def texts(self):
        return [f"question {i} of client {self.number}" for i in range(self.questions)]

    def prepare(self):
        """Compute what is expected, so that run() has nothing to compute."""
        for question in self.texts():
            alone(question, self.tokens)

    def run(self):
        for question in self.texts():
            while not self.completes(question):
                time.sleep(0.05)
            self.part = ""

    def completes(self, question):
        """Ask once; whether that brought an answer, right or wrong."""
        expected = alone(question, self.tokens)
        self.part = ""

        def add(piece):
            self.part += piece

        try:
            text = ask(self.server, question, self.tokens, add)
        except (Broken, Unavailable):
            if self.part:
                self.lost.append(self.part)
            if not expected.startswith(self.part):
                self.wrong.append((expected, self.part))
            return False
        if text != expected:
            self.wrong.append((expected, text))
        return True
