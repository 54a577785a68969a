"""Answers over HTTP and gRPC are those of ft-run, also for 32 clients at once.

SPDX-License-Identifier: Apache-2.0
"""
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tritonclient.grpc
import tritonclient.http
from support import check, ft_run

SNIPPETS = ["int main(void) { return 0; }", "def greet(name): return name",
            "my %count; $count{a}++;", "for f in *.txt; do mv $f $f.md; done"]
CLIENTS = 32


def texts(module, values, name="text_input"):
    data = np.array([[value if isinstance(value, bytes) else value.encode()] for value in values],
                    dtype=object)
    tensor = module.InferInput(name, list(data.shape), "BYTES")
    tensor.set_data_from_numpy(data)
    return tensor


def integers(module, name, rows):
    data = np.array(rows, dtype="int64")
    tensor = module.InferInput(name, list(data.shape), "INT64")
    tensor.set_data_from_numpy(data)
    return tensor


def clients(server):
    return [("HTTP", tritonclient.http, tritonclient.http.InferenceServerClient(server.http)),
            ("gRPC", tritonclient.grpc, tritonclient.grpc.InferenceServerClient(server.grpc))]


def test_classifier(server):
    expected = ft_run("language", *SNIPPETS)
    for name, module, client in clients(server):
        result = client.infer("language.ft", [texts(module, SNIPPETS)])
        labels = [label.decode() for label in result.as_numpy("label")[:, 0]]
        check(labels == [row["label"] for row in expected],
              f"a classifier gives the labels of ft-run over {name}", labels)
        probabilities = result.as_numpy("probabilities").max(axis=1)
        check(np.array_equal(probabilities, np.float32([row["probability"] for row in expected])),
              f"a classifier gives the probabilities of ft-run over {name}", probabilities)
        check(result.as_numpy("logits").shape == (len(SNIPPETS), 6),
              f"a classifier gives a row of logits for each text over {name}")


def embeddings(*rows):
    return np.float32([row["embedding"] for row in ft_run("embedder", *rows)])


def test_embedder(server):
    rows = ["a b", "c", "d e f a b c"]
    for name, module, client in clients(server):
        found = client.infer("embedder.ft", [texts(module, rows)]).as_numpy("embedding")
        check(np.array_equal(found, embeddings(*rows)),
              f"an embedder gives the embeddings of ft-run over {name}", found)
        inputs = [integers(module, "input_ids", [[2, 5, 6, 3], [2, 5, 3, 0]]),
                  integers(module, "attention_mask", [[1, 1, 1, 1], [1, 1, 1, 0]])]
        padded = client.infer("embedder.ft", inputs).as_numpy("embedding")
        short = [integers(module, "input_ids", [[2, 5, 3]])]
        alone = client.infer("embedder.ft", short).as_numpy("embedding")
        check(np.array_equal(padded[1:], alone),
              f"a padded row of ids has the embedding that it has alone over {name}", padded, alone)


def test_heads(server):
    _, found = server.generate("multi.ft", text_input="a b")
    check(np.array_equal(np.float32(found["probabilities"]),
                         np.float32(ft_run("multi", "a b")[0]["probabilities"])),
          "a multi-label classifier gives the probabilities of ft-run", found)
    _, found = server.generate("embed", text_input="a b")
    check(np.array_equal(np.float32(found["embedding"]),
                         np.float32(ft_run("decoder", "--embed", "a b")[0]["embedding"])),
          "with the parameter embed a decoder gives the embedding of ft-run", found)
    for name, module, client in clients(server):
        inputs = [texts(module, ["a", "a"]), texts(module, ["b c", "b c d"], "text_pair")]
        found = client.infer("span.ft", inputs).as_numpy("start_logits")
        alone = client.infer("span.ft", [texts(module, ["a"]), texts(module, ["b c"], "text_pair")])
        check(found.shape == (2, 7) and found[0, 6] == 0.0
              and np.array_equal(found[:1, :6], alone.as_numpy("start_logits")),
              f"pairs of different lengths are padded with zeros over {name}", found)


def test_decoder(server):
    for options, arguments in [
            ({"max_tokens": 8}, ["--max-new-tokens", "8"]),
            ({"max_tokens": 8, "temperature": 0.8, "top_k": 20, "seed": 5},
             ["--max-new-tokens", "8", "--temperature", "0.8", "--top-k", "20", "--seed", "5"]),
            ({"max_tokens": 30, "stop": ["C", "I"]},
             ["--max-new-tokens", "30", "--stop", "C", "--stop", "I"])]:
        expected = ft_run("decoder", *arguments, "--logprobs", "a b")[0]
        status, found = server.generate("decoder.ft", text_input="a b", **options)
        check(status == 200 and found["text_output"] == expected["text"]
              and found["output_ids"] == expected["ids"]
              and found["finish_reason"] == expected["finish_reason"],
              f"/generate gives the text of ft-run with {', '.join(options)}", found, expected)
        check(np.array_equal(np.float32(found["logprobs"]), np.float32(expected["logprobs"])),
              f"/generate gives the log-probabilities of ft-run with {', '.join(options)}")


def events(server, **body):
    """The events of /generate_stream."""
    _, text = server.get("/v2/models/decoder.ft/generate_stream", dict(body, stream=True))
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def test_stream(server):
    expected = ft_run("decoder", "--max-new-tokens", "8", "a b")[0]
    found = events(server, text_input="a b", max_tokens=8)
    check([event["output_ids"] for event in found] == expected["ids"],
          "/generate_stream gives an event for each token", found)
    check("".join(event["text_output"] for event in found) == expected["text"],
          "the pieces of a stream make the text of ft-run", found)
    check([event["finish_reason"] for event in found] == [""] * 7 + ["length"],
          "the last event of a stream has the finish reason", found)


def test_translator(server):
    ids = [4, 5, 6, 2]
    for options, arguments in [({}, []), ({"beams": 3}, ["--beams", "3"])]:
        expected = ft_run("translator", "--max-new-tokens", "9", *arguments, "a b c")[0]
        best = expected["hypotheses"][0] if options else expected
        _, found = server.generate("translator.ft", text_input="a b c", max_tokens=9, **options)
        tokens = found["output_ids"] if isinstance(found["output_ids"], list) else [
            found["output_ids"]]
        check(tokens == best["ids"] and found["text_output"] == best["text"],
              f"a translator gives the text of ft-run with {'beams' if options else '1 beam'}",
              found, best)
    status, found = server.generate("translator.ft", input_ids=ids, max_tokens=9)
    check(status == 200, "a translator reads ids", found)


def test_languages(server):
    for source, target in [("de", "fr"), ("en", "zh"), ("de", "fr"), ("fr", "de")]:
        expected = ft_run("languages", "--source-lang", source, "--target-lang", target,
                          "--max-new-tokens", "9", "w4 w5 w6")[0]
        _, found = server.generate("languages.ft", text_input="w4 w5 w6", max_tokens=9,
                                   source_lang=source, target_lang=target)
        check(found.get("output_ids") == expected["ids"],
              f"a translator from {source} to {target} gives the text of ft-run", found, expected)
    status, found = server.generate("languages.ft", text_input="w4", source_lang="de",
                                    target_lang="xx")
    check(status == 400 and "fr" in found["error"],
          "an unknown language is refused with the languages of the model", status, found)


def test_concurrency(server):
    """32 clients: of an embedder through one connection pool, of a decoder by threads."""
    rows = [" ".join("abcdef"[i % 6] for i in range(n, n + 1 + n % 7)) for n in range(4 * CLIENTS)]
    expected = embeddings(*rows)
    for name, module, client in clients(server):
        if module is tritonclient.http:
            client = module.InferenceServerClient(server.http, concurrency=CLIENTS)
            pending = [client.async_infer("embedder.ft", [texts(module, [row])]) for row in rows]
            found = [one.get_result().as_numpy("embedding")[0] for one in pending]
        else:
            with ThreadPoolExecutor(CLIENTS) as pool:
                found = list(pool.map(
                    lambda row: client.infer("embedder.ft", [texts(module, [row])])
                    .as_numpy("embedding")[0], rows))
        check(np.array_equal(np.stack(found), expected),
              f"{CLIENTS} clients of an embedder get their own embeddings over {name}")


def test_concurrent_texts(server):
    prompts = [f"a b {'c' * (n % 5)}{n}" for n in range(CLIENTS)]
    expected = ft_run("decoder", "--max-new-tokens", "12", *prompts)
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(lambda prompt: server.generate(
            "decoder.ft", text_input=prompt, max_tokens=12)[1], prompts))
    check([one["output_ids"] for one in found] == [one["ids"] for one in expected],
          f"{CLIENTS} clients of a decoder get the texts of ft-run")


def test_statistics(server):
    before = server.statistics("embedder.ft")["inference_stats"]["compute_infer"]
    server.generate("embedder.ft", text_input="a b")
    after = server.statistics("embedder.ft")["inference_stats"]["compute_infer"]
    check(after["count"] == before["count"] + 1 and after["ns"] > before["ns"],
          "the statistics of the server count a request and its computation", before, after)


def test_configuration(server):
    config = json.loads(server.get("/v2/models/language.ft/config")[1])
    outputs = {one["name"]: (one["data_type"], one["dims"]) for one in config["output"]}
    check(config["max_batch_size"] == 64
          and outputs == {"logits": ("TYPE_FP32", [6]), "probabilities": ("TYPE_FP32", [6]),
                          "label": ("TYPE_STRING", [1])},
          "the configuration of a classifier is completed from its artifact", outputs)
    config = json.loads(server.get("/v2/models/decoder.ft/config")[1])
    check(config["model_transaction_policy"] == {"decoupled": True}
          and "temperature" in [one["name"] for one in config["input"]],
          "the configuration of a decoder is completed from its artifact", config)
