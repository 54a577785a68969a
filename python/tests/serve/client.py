"""A client that tells a broken connection from a refusal and from a complete answer.

SPDX-License-Identifier: Apache-2.0
"""
import http.client
import json

from process import LONG, chat


class Refused(Exception):
    """The server has answered with an error."""

    def __init__(self, response):
        super().__init__(response.status)
        self.status = response.status
        self.headers = response.headers
        self.error = json.loads(response.read())["error"]


class Unavailable(Exception):
    """Nothing that could answer is there."""


class Broken(Exception):
    """The connection broke before the answer was complete."""


def open_chat(port, content, tokens):
    """Ask for a stream at temperature 0, and return the connection and the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    body = chat(content, temperature=0, max_tokens=tokens, stream=True)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body),
                           {"Content-Type": "application/json"})
        return connection, connection.getresponse()
    except (OSError, http.client.HTTPException) as failure:
        connection.close()
        raise Broken(failure) from failure


def pieces(response):
    """The texts of a stream as they come."""
    if response.status >= 500:
        raise Unavailable(response.status)
    if response.status != 200:
        raise Refused(response)
    try:
        for line in response:
            if line.strip() == b"data: [DONE]":
                return
            if line.startswith(b"data:"):
                for choice in json.loads(line[5:])["choices"]:
                    yield choice["delta"].get("content") or ""
    except (OSError, ValueError, http.client.HTTPException) as failure:
        raise Broken(failure) from failure
    raise Broken("the stream has no end mark")


def ask(port, content, tokens, on_piece=lambda text: None):
    """The complete answer; on_piece is called with each part of it."""
    connection, response = open_chat(port, content, tokens)
    try:
        text = ""
        for piece in pieces(response):
            on_piece(piece)
            text += piece
        return text
    finally:
        connection.close()
