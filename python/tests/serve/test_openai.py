"""The client of OpenAI talks to the server.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import json
import unittest

import ftruntime as ft
import openai
from ftruntime.serve.logprobs import Pieces
from ftruntime.serve.sse import event

import support
from process import LONG, Process

KEY = "sk-test-0123456789"
MODELS = ("decoder", "embedder", "classifier")


def setUpModule():
    global SERVER
    SERVER = Process("--api-key", KEY, "--max-sequences", "4", "--queue", "36", models=MODELS)
    unittest.addModuleCleanup(SERVER.__exit__)
    SERVER.__enter__()


def client(kind=openai.OpenAI, key=KEY):
    return kind(base_url=SERVER.url + "/v1", api_key=key, max_retries=0, timeout=LONG)


def open_model(name):
    return ft.Model.open(support.generated(name))


USER = [{"role": "user", "content": "a"}]


class Chats(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.chats = self.client.chat.completions

    def test_models_are_listed(self):
        found = {model.id: model.tasks for model in self.client.models.list()}
        self.assertEqual(found, {"decoder": ["chat", "completions"], "embedder": ["embeddings"],
                                 "classifier": ["rerank"]})
        self.assertEqual(self.client.models.retrieve("decoder").max_model_len, 4096)

    def test_a_greedy_answer_is_that_of_the_model(self):
        found = self.chats.create(model="decoder", messages=USER, temperature=0, max_tokens=12)
        expected = open_model("decoder").chat(USER, max_new_tokens=12)
        choice = found.choices[0]
        self.assertEqual(choice.message.content, expected.text)
        self.assertEqual(choice.finish_reason, "length")
        self.assertEqual(found.usage.completion_tokens, 12)
        self.assertEqual(found.usage.total_tokens, found.usage.prompt_tokens + 12)

    def test_parts_of_a_message_are_joined(self):
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        options = {"model": "decoder", "temperature": 0, "max_tokens": 12}
        found = [self.chats.create(messages=[{"role": "user", "content": content}], **options)
                 for content in (parts, "ab")]
        self.assertEqual(*(answer.choices[0].message.content for answer in found))

    def test_a_stream_has_the_text_and_the_usage_of_the_whole_answer(self):
        options = {"model": "decoder", "messages": USER, "seed": 5, "max_completion_tokens": 12}
        whole = self.chats.create(**options)
        chunks = list(self.chats.create(stream=True, stream_options={"include_usage": True},
                                        **options))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage), ([], whole.usage))

    def test_an_event_is_one_line_for_clients_that_know_all_line_separators(self):
        text = "\x0b\x0c\r\n\x1c\x1d\x1e\x85\u2028\u2029"
        lines = event({"text": text}).decode().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(json.loads(lines[0][len("data: "):]), {"text": text})

    def test_choices_have_seeds_of_their_own(self):
        options = {"model": "decoder", "messages": USER, "max_tokens": 12}
        whole = self.chats.create(n=3, seed=5, **options)
        texts = [choice.message.content for choice in whole.choices]
        self.assertEqual(len(set(texts)), 3)
        alone = [self.chats.create(seed=5 + i, **options) for i in range(3)]
        self.assertEqual(texts, [answer.choices[0].message.content for answer in alone])
        streamed = [""] * 3
        for chunk in self.chats.create(n=3, seed=5, stream=True, **options):
            streamed[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        self.assertEqual(streamed, texts)

    def test_answers_without_a_seed_differ(self):
        found = {self.chats.create(model="decoder", messages=USER, max_tokens=20)
                 .choices[0].message.content for _ in range(4)}
        self.assertGreater(len(found), 1)

    def test_a_stop_string_ends_an_answer(self):
        options = {"model": "decoder", "messages": USER, "seed": 5, "max_tokens": 12}
        whole = self.chats.create(**options).choices[0].message.content
        found = self.chats.create(stop=[whole[3:5]], **options).choices[0]
        self.assertEqual(found.message.content, whole[:whole.index(whole[3:5])])
        self.assertEqual(found.finish_reason, "stop")

    def test_logprobs_are_those_of_the_chosen_tokens(self):
        options = {"model": "decoder", "messages": USER, "temperature": 0, "max_tokens": 12,
                   "logprobs": True}
        expected = open_model("decoder").chat(USER, max_new_tokens=12).logprobs
        whole = self.chats.create(**options).choices[0].logprobs.content
        streamed = [entry for chunk in self.chats.create(stream=True, **options)
                    if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content]
        self.assertEqual([entry.logprob for entry in whole], expected)
        self.assertEqual(streamed, whole)

    def test_tokens_have_the_text_that_they_add(self):
        tokenizer = open_model("embedder").tokenizer
        pieces = Pieces(tokenizer)
        ids = tokenizer.encode("a b c", add_special_tokens=False).ids
        self.assertEqual([pieces.piece(id) for id in ids], ["a", " b", " c"])

    def test_many_clients_get_what_each_gets_alone(self):
        async def ask(chats, i):
            stream = await chats.create(model="decoder", messages=USER, seed=i, max_tokens=16,
                                        stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        async def ask_all():
            async with client(openai.AsyncOpenAI) as asynchronous:
                chats = asynchronous.chat.completions
                return await asyncio.gather(*(ask(chats, i) for i in range(32)))

        model = open_model("decoder")
        expected = [model.chat(USER, max_new_tokens=16, temperature=1.0, seed=i).text
                    for i in range(32)]
        self.assertEqual(asyncio.run(ask_all()), expected)


class Others(unittest.TestCase):
    def setUp(self):
        self.client = client()

    def test_completions_are_those_of_the_model(self):
        found = self.client.completions.create(model="decoder", prompt=["ab", "c"], temperature=0,
                                               logprobs=0)
        expected = open_model("decoder").generate(["ab", "c"], max_new_tokens=16)
        self.assertEqual([choice.text for choice in found.choices],
                         [made.text for made in expected])
        self.assertEqual([choice.logprobs.token_logprobs for choice in found.choices],
                         [made.logprobs for made in expected])

    def test_completions_take_token_ids_and_stream(self):
        ids = open_model("decoder").tokenizer.encode("ab").ids
        options = {"model": "decoder", "temperature": 0, "max_tokens": 9}
        whole = self.client.completions.create(prompt="ab", **options).choices[0].text
        chunks = self.client.completions.create(prompt=ids, stream=True, **options)
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks), whole)

    def test_embeddings_are_those_of_the_model(self):
        texts = ["a b", "c", "d e f"]
        expected = open_model("embedder").embed(texts).tolist()
        for options in ({}, {"encoding_format": "float"}):  # {}: the client asks for base64
            found = self.client.embeddings.create(model="embedder", input=texts, **options)
            self.assertEqual([entry.embedding for entry in found.data], expected)
        self.assertEqual(found.usage.prompt_tokens, 12)

    def test_embeddings_have_the_dimensions_asked_for(self):
        found = self.client.embeddings.create(model="embedder", input="a b", dimensions=4)
        expected = open_model("embedder").embed("a b", dim=4)[0].tolist()
        self.assertEqual(found.data[0].embedding, expected)

    def test_embeddings_take_token_ids(self):
        ids = open_model("embedder").tokenizer.encode("a b").ids
        found = self.client.embeddings.create(model="embedder", input=[ids])
        self.assertEqual(found.data[0].embedding, open_model("embedder").embed("a b")[0].tolist())

    def test_documents_are_ranked_by_the_scores_of_the_model(self):
        body = {"model": "classifier", "query": "a", "documents": ["b", {"text": "c d"}, "e"]}
        found = SERVER.http.post("/v1/rerank", json=dict(body, top_n=2),
                                 headers={"Authorization": "Bearer " + KEY}).json()["results"]
        scores = open_model("classifier").rerank("a", ["b", "c d", "e"]).tolist()
        best = sorted(range(3), key=lambda i: -scores[i])[:2]
        self.assertEqual([(result["index"], result["relevance_score"]) for result in found],
                         [(i, scores[i]) for i in best])
        self.assertEqual([result["document"]["text"] for result in found],
                         [["b", "c d", "e"][i] for i in best])


class Errors(unittest.TestCase):
    def assert_refused(self, kind, code, *, key=KEY, **options):
        options = dict({"model": "decoder", "messages": USER, "max_tokens": 2}, **options)
        with self.assertRaises(kind) as caught:
            client(key=key).chat.completions.create(**options)
        self.assertEqual(caught.exception.code, code)
        return str(caught.exception)

    def test_a_wrong_key_is_refused(self):
        self.assert_refused(openai.AuthenticationError, "invalid_api_key", key="sk-wrong")

    def test_an_unknown_model_is_refused_with_its_name(self):
        text = self.assert_refused(openai.NotFoundError, "model_not_found", model="other")
        self.assertIn('found "other", expected "decoder"', text)

    def test_a_model_for_something_else_is_refused(self):
        self.assert_refused(openai.BadRequestError, "unsupported_model", model="embedder")

    def test_invalid_parameters_are_refused_with_what_is_expected(self):
        text = self.assert_refused(openai.BadRequestError, "invalid_value", temperature=3)
        self.assertIn("temperature: found 3, expected a number from 0 to 2", text)
        for options in ({"max_tokens": 0}, {"n": 1000}, {"top_p": "x"}, {"stop": ["a"] * 20},
                        {"messages": [{"role": "robot", "content": "a"}]},
                        {"messages": [{"role": "user", "content": "a\0b"}]},
                        {"messages": []}, {"seed": 1.5}, {"stream_options": {}}):
            self.assert_refused(openai.BadRequestError, "invalid_value", **options)

    def test_parameters_that_would_change_the_answer_are_refused(self):
        tool = {"type": "function", "function": {"name": "f"}}
        for options in ({"tools": [tool]}, {"response_format": {"type": "json_object"}},
                        {"logit_bias": {"5": 1}}, {"logprobs": True, "top_logprobs": 2}):
            self.assert_refused(openai.BadRequestError, "unsupported_parameter", **options)
        self.assert_refused(openai.BadRequestError, "unknown_parameter", extra_body={"beams": 4})

    def test_parameters_that_change_nothing_are_accepted(self):
        found = client().chat.completions.create(
            model="decoder", messages=USER, max_tokens=2, user="someone", store=False,
            metadata={"a": "b"}, tools=[], logit_bias={}, response_format={"type": "text"})
        self.assertEqual(len(found.choices), 1)

    def test_a_prompt_beyond_the_context_is_refused(self):
        text = self.assert_refused(openai.BadRequestError, "context_length_exceeded",
                                   messages=[{"role": "user", "content": "a" * 5000}])
        self.assertIn("context of 4096", text)

    def test_a_full_queue_is_told_with_the_time_to_come_back(self):
        chats = client().chat.completions
        stream = chats.create(model="decoder", messages=USER, n=40, stream=True,
                              max_tokens=4000, extra_body={"ignore_eos": True})
        with stream:
            with self.assertRaises(openai.RateLimitError) as caught:
                chats.create(model="decoder", messages=USER)
        self.assertEqual(caught.exception.response.headers["retry-after"], "1")
        self.assertEqual(caught.exception.code, "queue_full")


if __name__ == "__main__":
    unittest.main()
