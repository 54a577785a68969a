"""Streams over gRPC: tokens as they come, cancellation, sequences of requests.

SPDX-License-Identifier: Apache-2.0
"""
import json
import queue
import socket
import threading
import time

import numpy as np
import tritonclient.grpc as grpc
from support import check, ft_run, skip, wait_for


def value(name, data, kind):
    array = np.array([data.encode() if kind == "BYTES" else data],
                     dtype={"BYTES": object, "INT32": "int32", "BOOL": bool}[kind])
    tensor = grpc.InferInput(name, [1], kind)
    tensor.set_data_from_numpy(array)
    return tensor


def request(text, max_tokens, **more):
    inputs = [value("text_input", text, "BYTES"), value("max_tokens", max_tokens, "INT32"),
              value("stream", True, "BOOL")]
    return inputs + [value(name, one, "BOOL") for name, one in more.items()]


class Stream:
    """A stream of gRPC, whose answers come in a queue."""

    def __init__(self, server, model):
        self.model, self.answers = model, queue.Queue()
        self.client = grpc.InferenceServerClient(server.grpc)
        self.client.start_stream(lambda result, error: self.answers.put((result, error)))

    def send(self, inputs, **options):
        self.client.async_stream_infer(self.model, inputs, enable_empty_final_response=True,
                                       **options)

    def read(self):
        """Ids, text and error of one request."""
        ids, text = [], b""
        while True:
            result, error = self.answers.get(timeout=30)
            if error is not None:
                return ids, text.decode("utf-8", "replace"), str(error)
            if result.as_numpy("output_ids") is not None:
                ids += result.as_numpy("output_ids").tolist()
                text += result.as_numpy("text_output")[0]
            if result.get_response().parameters["triton_final_response"].bool_param:
                return ids, text.decode("utf-8", "replace"), None

    def close(self, cancel=False):
        self.client.stop_stream(cancel_requests=cancel)


def test_tokens(server):
    expected = ft_run("decoder", "--max-new-tokens", "8", "a b")[0]
    stream = Stream(server, "decoder.ft")
    stream.send(request("a b", 8))
    ids, text, error = stream.read()
    check(ids == expected["ids"] and text == expected["text"] and error is None,
          "a stream of gRPC gives the text of ft-run", ids, error)
    stream.close()


def ask(stream, text, **options):
    stream.send(request(text, 6), **options)
    return stream.read()


def test_sequences(server):
    """Each request of a correlation id continues the text so far."""
    stream = Stream(server, "decoder.ft")
    for id in (7, "seven"):
        said, texts = "", ["def a", " b a", " c"]
        for i, text in enumerate(texts):
            _, found, error = ask(stream, text, sequence_id=id, sequence_start=i == 0,
                                  sequence_end=i == 2)
            said += text
            expected = ft_run("decoder", "--max-new-tokens", "6", said)[0]["text"]
            said += found
            check(found == expected and error is None,
                  f"request {i + 1} of sequence {id} continues the text of those before", found,
                  error)
        _, _, error = ask(stream, " d", sequence_id=id)
        check(error is not None and f"sequence {id}: found none, expected sequence_start" in error,
              f"after its end sequence {id} needs a new start", error)
    for id in range(1, 12):
        ask(stream, "a", sequence_id=id, sequence_start=True)
    stream.close()
    few = Stream(server, "few")
    for id in (1, 2, 3):
        ask(few, "a", sequence_id=id, sequence_start=True)
    errors = [ask(few, "a", sequence_id=id)[2] for id in (1, 2, 3)]
    check(errors[0] is not None and errors[1:] == [None, None],
          "with max_sequence_ids 2 the sequence that was idle for longest is forgotten", errors)
    few.close()


def failed(server):
    """Requests to the model "single" that have failed so far."""
    return server.statistics("single")["inference_stats"]["fail"]["count"]


class Post:
    """A client of /generate_stream that can go away."""

    def __init__(self, server, max_tokens):
        host, port = server.http.split(":")
        body = json.dumps({"text_input": "a b", "max_tokens": max_tokens, "stream": True,
                           "ignore_eos": True}).encode()
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.sendall(b"POST /v2/models/single/generate_stream HTTP/1.1\r\nHost: a\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def wait(self):
        self.socket.recv(1)

    def close(self):
        self.socket.close()


def test_disconnect(server):
    """One request runs and two wait behind it when their clients go away."""
    before, running = failed(server), Post(server, 30000)
    running.wait()
    waiting = [Post(server, 30000) for _ in range(2)]
    time.sleep(0.3)  # for them to arrive
    for client in [running, *waiting]:
        client.close()
    check(wait_for(lambda: failed(server) == before + 3, 2),
          "requests that run and wait are cancelled when their clients go away",
          server.statistics("single"))
    status, found = server.generate("single", text_input="a b", max_tokens=1)
    check(status == 200, "after cancelled requests the next one is served", found)


def test_cancel(server):
    """A stream of gRPC is cancelled.  Servers before release 2.54 may crash then, by themselves."""
    before, stream = failed(server), Stream(server, "single")
    stream.send(request("a b", 30000, ignore_eos=True))
    stream.answers.get(timeout=30)
    stream.close(cancel=True)
    sentence = "a request runs until its stream of gRPC is cancelled"

    def ended():
        return server.process.poll() is not None or failed(server) == before + 1

    try:
        fails = wait_for(ended, 5)
    except OSError:  # it crashes meanwhile
        fails = wait_for(lambda: server.process.poll() is not None, 5)
    if server.process.poll() is None:
        check(fails, sentence, server.statistics("single"))
    elif "libtriton_ft" in server.crash() or "libftruntime" in server.crash():
        check(False, sentence, server.crash())
    else:
        skip(sentence, "the server has crashed in its own code")


def test_slow_reader(server):
    """A client that stops reading delays nobody, and its stream is whole when it goes on."""
    gate, got = threading.Event(), []

    def on_answer(result, error):
        gate.wait(30)
        got.append(error)

    client = grpc.InferenceServerClient(server.grpc)
    client.start_stream(on_answer)
    client.async_stream_infer("decoder.ft", request("a b", 2000, ignore_eos=True))
    began = time.monotonic()
    _, found = server.generate("decoder.ft", text_input="a b", max_tokens=8)
    took = time.monotonic() - began
    check(took < 5.0 and len(found["output_ids"]) == 8,
          "others are served while a client does not read its stream", took)
    gate.set()
    check(wait_for(lambda: len(got) == 2000) and got == [None] * 2000,
          "a client that reads again gets all tokens of its stream", len(got))
    client.stop_stream()
