"""All tests of the backend for Triton Inference Server, as TAP.

SPDX-License-Identifier: Apache-2.0
"""
import traceback

import answers
import faults
import streams
import support
from support import add_model, artifact, check, parameters

ALL = [
    answers.test_classifier, answers.test_embedder, answers.test_heads, answers.test_decoder,
    answers.test_stream, answers.test_translator, answers.test_languages, answers.test_concurrency,
    answers.test_concurrent_texts, answers.test_statistics, answers.test_configuration,
    streams.test_tokens, streams.test_sequences, streams.test_disconnect, streams.test_slow_reader,
    faults.test_bad_requests, faults.test_timeout, faults.test_bad_configurations,
    faults.test_reload, faults.test_full_queue, faults.test_kill,
]


def make_repository():
    for name in ("language", "embedder", "decoder", "translator", "languages", "multi",
                 "span"):
        add_model(name + ".ft", artifact(name))
    decoder = artifact("decoder")
    add_model("single", decoder, parameters(max_sequences=1, queue=2, context=32768, threads=1))
    add_model("few", decoder, parameters(max_sequence_ids=2, cache_tokens=8192))
    add_model("plain", decoder, "model_transaction_policy { decoupled: false }\n"
              + parameters(max_sequences=1, queue=2, context=32768, threads=1))
    add_model("embed", decoder, parameters(embed="true"))
    add_model("changing", decoder, "")


def run(server):
    for test in ALL:
        try:
            test(server)
        except Exception:
            check(False, f"{test.__name__} ends", traceback.format_exc())
    check(server.stop() == 0, "the server ends when it is told to", server.log_text()[-4000:])
    started = server.start()
    check(started, "a server starts after another has ended", server.log_text()[-4000:])
    if started:
        streams.test_cancel(server)
    server.kill()


def main():
    make_repository()
    server = support.Server()
    started = server.start()
    check(started, "the server starts with the backend", server.log_text()[-4000:])
    if started:
        run(server)
    print(f"1..{support.count}")


main()
