"""Bad requests and configurations, reloading under load, full queues, a server that is killed.

SPDX-License-Identifier: Apache-2.0
"""
import os
import queue
import threading
import time

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from answers import embeddings, integers, texts
from streams import Stream, ask, request, value
from support import REPOSITORY, add_model, artifact, check, ft_run, parameters, wait_for


def refused(server, status, expected, sentence, model, **body):
    found = server.generate(model, **body)
    check(found[0] == status and expected in found[1].get("error", ""), sentence, *found)


def test_bad_requests(server):
    refused(server, 400, "max_tokns: unknown, expected one of:",
            "an unknown parameter is refused with the names of all", "decoder.ft",
            text_input="a", max_tokns=1)
    refused(server, 400, "top_p is 7, expected 0 to 1",
            "a parameter out of range is refused with its range", "decoder.ft", text_input="a",
            top_p=7.0)
    refused(server, 400, "found none, expected either text_input or input_ids",
            "a request without an input is refused", "decoder.ft", max_tokens=1)
    refused(server, 400, "found both", "a request with text and ids is refused", "decoder.ft",
            text_input="a", input_ids=[1])
    refused(server, 400, "token 1 is 4000, expected 0 to 299",
            "an id outside the vocabulary is refused", "decoder.ft", input_ids=[1, 4000])
    refused(server, 400, "found 5000 tokens, expected less than 4096",
            "a prompt longer than the context is refused", "decoder.ft", input_ids=[1] * 5000)
    refused(server, 400, "stream: found true", "a model that is not decoupled does not stream",
            "plain", text_input="a", stream=True)
    refused(server, 400, "source_lang: unknown",
            "a decoder refuses the parameters of translators", "decoder.ft", text_input="a",
            source_lang="de")
    refused(server, 400, "expected at most 256, or truncate",
            "a text longer than an encoder's positions is refused", "language.ft",
            text_input="a " * 2000)
    status, _ = server.generate("language.ft", text_input="a " * 2000, truncate=True)
    check(status == 200, "with truncate a text longer than an encoder's positions is cut")
    status, found = server.generate("embedder.ft", text_input="")
    check(status == 200 and np.array_equal(np.float32(found["embedding"]), embeddings("")[0]),
          "an empty text has an embedding", status, found)
    client = http.InferenceServerClient(server.http)
    for name, inputs, message in [
            ("ids and mask of different shapes are refused",
             [integers(http, "input_ids", [[1, 2]]), integers(http, "attention_mask", [[1]])],
             "shape"),
            ("a text that is not UTF-8 is refused", [texts(http, [b"\xff"])], "UTF-8")]:
        try:
            client.infer("embedder.ft", inputs)
            found = "no error"
        except Exception as failure:
            found = str(failure)
        check(message in found, name, found)
    status, _ = server.generate("decoder.ft", text_input="a b", max_tokens=1)
    check(status == 200, "after bad requests the server answers good ones")


def test_timeout(server):
    stream = Stream(server, "single")
    stream.send(request("a b", 30000, ignore_eos=True), timeout=100000)
    _, _, error = stream.read()
    check(error is not None and "timeout" in error.lower() or "in time" in str(error),
          "a request ends when its timeout has passed", error)
    stream.close()


# ---- Configurations ----------------------------------------------------------------------------


def refuses_to_load(server, name, config, message, sentence):
    add_model(name, artifact("embedder"), config)
    status, text = server.load(name)
    check(status == 400 and message in text, sentence, status, text)


def test_bad_configurations(server):
    embedding = 'output [ {{ name: "{}" data_type: {} dims: [ {} ] }} ]\n'
    refuses_to_load(server, "bad-parameter", parameters(thread=2),
                    "thread: unknown, expected one of: threads context",
                    "an unknown parameter of a model is refused with the names of all")
    refuses_to_load(server, "bad-value", parameters(kv="f17"),
                    'kv: found \\"f17\\", expected auto, f16 or int8',
                    "a bad parameter of a model is refused with what it may be")
    refuses_to_load(server, "bad-output", embedding.format("logits", "TYPE_FP32", 8),
                    "logits: the artifact has no such input or output",
                    "an output that the artifact lacks is refused")
    refuses_to_load(server, "bad-type", embedding.format("embedding", "TYPE_INT32", 8),
                    "found TYPE_INT32 [8], expected TYPE_FP32 [8]",
                    "an output of another type is refused with both types")
    refuses_to_load(server, "bad-dims", embedding.format("embedding", "TYPE_FP32", 9),
                    "found TYPE_FP32 [9], expected TYPE_FP32 [8]",
                    "an output of another size is refused with both sizes")
    add_model("bad-batch", artifact("decoder"), "max_batch_size: 8\n")
    status, text = server.load("bad-batch")
    check(status == 400 and "max_batch_size: found 8, expected 0" in text,
          "a batch size of a decoder is refused", status, text)
    add_model("outside", artifact("embedder"), "")
    path = os.path.join(REPOSITORY, "outside/1/model.ft")
    os.remove(path)
    os.symlink(artifact("embedder"), path)
    status, text = server.load("outside")
    check(status == 400 and "expected a file in" in text,
          "a link that leads out of the folder of a model is refused", status, text)
    add_model("up", artifact("embedder"),
              'default_model_filename: "../../embedder.ft/1/model.ft"\n')
    status, text = server.load("up")
    check(status == 400 and "expected a file in" in text,
          "a file name that leads out of the folder of a model is refused", status, text)


# ---- Reloading ---------------------------------------------------------------------------------


class Load:
    """Requests to a model from four threads, until it is closed."""

    def __init__(self, server, text):
        self.server, self.text, self.answers, self.ends = server, text, [], False
        self.threads = [threading.Thread(target=self.ask) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        while not self.ends:
            self.answers.append(
                self.server.generate("changing", text_input=self.text, max_tokens=6))

    def close(self):
        self.ends = True
        for thread in self.threads:
            thread.join()


def test_reload(server):
    old, new = (ft_run(name, "--max-new-tokens", "6", "a b")[0]["text"]
                for name in ("decoder", "other"))
    load = Load(server, "a b")
    wait_for(lambda: len(load.answers) > 20)
    add_model("changing", artifact("other"))
    status, text = server.load("changing")
    reloaded = len(load.answers)
    wait_for(lambda: len(load.answers) > reloaded + 80)
    load.close()
    found = [answer.get("text_output", answer) for _, answer in load.answers]
    check(status == 200 and old != new and set(found) == {old, new},
          "a model is reloaded under load: each request gets the answer of the old or the new one",
          status, text, set(map(str, found)))
    check(len(found) > reloaded + 80 and all(one == new for one in found[reloaded + 40:]),
          "after a reload all answers are those of the new model")
    damage(os.path.join(REPOSITORY, "changing/1/model.ft"))
    status, text = server.load("changing")
    check(status == 400 and "model.ft" in text and "CRC" in text,
          "a damaged artifact is refused when it is loaded, with the damage", status, text)
    _, found = server.generate("changing", text_input="a b", max_tokens=6)
    check(found.get("text_output") == new, "after that the old model answers as before", found)


def damage(path):
    """Replace the file by one in which a bit of the weights is wrong."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[len(data) // 2] ^= 4
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


# ---- Load --------------------------------------------------------------------------------------


def test_full_queue(server):
    """One request runs and two wait, so that the next one is refused."""
    client = grpc.InferenceServerClient(server.grpc)
    answers = [queue.Queue() for _ in range(3)]

    def send(answer, max_tokens, timeout=None):
        inputs = [value("text_input", "a b", "BYTES"), value("max_tokens", max_tokens, "INT32"),
                  value("ignore_eos", True, "BOOL")]
        client.async_infer("plain", inputs, lambda result, error: answer.put(result or error),
                           timeout=timeout)

    send(answers[0], 30000, timeout=1500000)
    time.sleep(0.3)
    for answer in answers[1:]:
        send(answer, 8)
    time.sleep(0.3)
    try:
        client.infer("plain", [value("text_input", "a b", "BYTES")])
        found = "no error"
    except Exception as failure:
        found = f"{failure.status()} {failure.message()}"
    check(found == "StatusCode.UNAVAILABLE 2 requests wait, and the queue has room for 2",
          "a full queue refuses a request as UNAVAILABLE", found)
    expected = ft_run("decoder", "--max-new-tokens", "8", "a b")[0]["ids"]
    found = [answer.get(timeout=10) for answer in answers[1:]]
    check([result.as_numpy("output_ids").tolist() for result in found] == [expected] * 2,
          "the requests that a full queue has accepted are answered", found)


def test_kill(server):
    """What is lost with a server that is killed is what was in flight, and sequences."""
    running, idle = Stream(server, "single"), Stream(server, "decoder.ft")
    ask(idle, "a", sequence_id=9, sequence_start=True)
    running.send(request("a b", 30000, ignore_eos=True))
    running.answers.get(timeout=30)
    server.kill()
    _, _, error = running.read()
    check(error is not None, "a request in flight fails when the server is killed", error)
    for stream in (running, idle):
        stream.close(cancel=True)
    check(server.start(), "the server starts again")
    _, found = server.generate("decoder.ft", text_input="a b", max_tokens=8)
    check(found["output_ids"] == ft_run("decoder", "--max-new-tokens", "8", "a b")[0]["ids"],
          "the server that has been started again gives the same answers", found)
    stream = Stream(server, "decoder.ft")
    error = ask(stream, "b", sequence_id=9)[2]
    check(error is not None and "the server has been restarted" in error,
          "a sequence of the server before is refused with the reason", error)
    stream.close()
