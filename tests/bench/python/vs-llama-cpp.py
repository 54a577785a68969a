#!/usr/bin/env python3
"""vs-llama-cpp.py --bin BUILD - CPU decoding and prefill with group-wise weights, against llama.cpp.

Both have random weights of the shape "llama-1b" of ft-bench: matrices of Llama 3.2 1B with a
vocabulary of 32,000.  Linears have 4 or 8 bits in groups of 32 with a float16 scale, w4a16, w8a16 and
w8a8-block in FT, Q4_0 and Q8_0 in llama.cpp; the token embeddings and the LM head are float16 in both.
So both read the same number of bytes per token.  llama.cpp quantizes activations to 8 bits, as only
w8a8-block does in FT.

They alternate: each round times decode steps after the same context, and prompts, of both.  Ratios are
of medians, and of minimum times, which competing load affects less.  --busy starts that many busy
loops beside both.

    python3 tests/bench/python/vs-llama-cpp.py --bin BUILD [--rounds 3] [--steps 30] [--context 128]
        [--prompt 128] [--busy 1]

Needs numpy, gguf and llama_cpp (the package llama-cpp-python builds llama.cpp for this processor).

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import gguf
import numpy as np
from llama_cpp import Llama

LAYERS, HIDDEN, HEADS, KV_HEADS, FFN, VOCABULARY = 16, 2048, 32, 8, 8192, 32000
KV = HIDDEN // HEADS * KV_HEADS
PROMPTS = 3  # timed in a round
KINDS = {"w4a16": gguf.GGMLQuantizationType.Q4_0, "w8a16": gguf.GGMLQuantizationType.Q8_0,
         "w8a8-block": gguf.GGMLQuantizationType.Q8_0}
LINEARS = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (KV, HIDDEN), "attn_v": (KV, HIDDEN),
           "attn_output": (HIDDEN, HIDDEN), "ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN),
           "ffn_down": (HIDDEN, FFN)}


def matrix(seed, shape):
    return 0.02 * np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def write_gguf(path, kind):
    """A model that llama.cpp loads; its tokens have no meaning."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(5e5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"] + [f"t{i}" for i in range(3, VOCABULARY)])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([2, 3, 3] + [1] * (VOCABULARY - 3))
    for name in ("token_embd", "output"):
        writer.add_tensor(f"{name}.weight", matrix(len(name), (VOCABULARY, HIDDEN)).astype(np.float16))
    ones = np.ones(HIDDEN, dtype=np.float32)
    writer.add_tensor("output_norm.weight", ones)
    coded = {name: gguf.quants.quantize(matrix(i, shape), kind)
             for i, (name, shape) in enumerate(LINEARS.items())}
    for layer in range(LAYERS):
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", ones)
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", ones)
        for name, codes in coded.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", codes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    def __init__(self, path, args):
        self.args = args
        self.model = Llama(model_path=path, n_ctx=max(args.context + args.steps, args.prompt) + 16,
                           n_batch=512, n_threads=args.threads, n_threads_batch=args.threads,
                           use_mmap=False, verbose=False)

    def timed(self, tokens):
        before = time.perf_counter()
        self.model.eval(tokens)
        return 1e3 * (time.perf_counter() - before)

    def decode(self):
        """Milliseconds of single tokens after a context that is evaluated anew."""
        self.model.reset()
        self.model.eval([3 + i % 1000 for i in range(self.args.context)])
        return [self.timed([1000 + i]) for i in range(self.args.steps)]

    def prefill(self):
        """Milliseconds of whole prompts; the first one warms up."""
        times = []
        for _ in range(1 + PROMPTS):
            self.model.reset()
            times.append(self.timed([3 + i % 1000 for i in range(self.args.prompt)]))
        return times[1:]


def ours(args, scheme, options):
    """The case that ft-bench timed."""
    command = [os.path.join(args.bin, "ft-bench"), "--shape", "llama-1b", "--scheme", scheme, "-b", "1",
               "-t", str(args.threads), *map(str, options), "--json", "-q"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["cases"][0]


def our_decode(args, scheme):
    return ours(args, scheme, ["-r", args.steps, "--decode", args.context])


def our_prefill(args, scheme):
    return ours(args, scheme, ["-r", PROMPTS, "-l", args.prompt])


# What is timed: its name, FT's case, and llama.cpp's times.
WORK = [("decode", our_decode, LlamaCpp.decode), ("prefill", our_prefill, LlamaCpp.prefill)]


def one_round(args, scheme, theirs, work):
    """(median, least) milliseconds of FT and of llama.cpp, and FT's case."""
    _, our_case, their_times = work
    times = their_times(theirs)
    case = our_case(args, scheme)
    return (case["median_ms"], case["min_ms"]), (statistics.median(times), min(times)), case


@contextlib.contextmanager
def busy_loops(count):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def compare(args, models):
    """Ratios by scheme and work, one row per round."""
    rounds = {(scheme, work[0]): [] for scheme in models for work in WORK}
    print("scheme     work     round   ours ms (least)  llama.cpp ms (least)  ratio (least)  of read")
    for i in range(args.rounds):
        for scheme, model in models.items():
            for work in WORK:
                our, other, case = one_round(args, scheme, model, work)
                of_read = case.get("bandwidth_fraction") if work[0] == "decode" else None
                rounds[scheme, work[0]].append((other[0] / our[0], other[1] / our[1]))
                print(f"{scheme:10} {work[0]:8} {i:5} {our[0]:9.2f} {our[1]:7.2f} {other[0]:13.2f} "
                      f"{other[1]:7.2f} {other[0] / our[0]:6.2f} {other[1] / our[1]:7.2f} "
                      f"{'' if of_read is None else f'{of_read:8.2f}'}", flush=True)
    return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="folder of ft-bench")
    parser.add_argument("--folder", help="where files of about 1 GB are kept; default: BIN")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="busy loops beside both")
    parser.add_argument("--schemes", default=",".join(KINDS))
    args = parser.parse_args()
    models, opened = {}, {}
    for scheme in args.schemes.split(","):
        kind = KINDS[scheme]
        path = os.path.join(args.folder or args.bin, f"llama-1b-{kind.name}.gguf")
        if not os.path.exists(path):
            write_gguf(path, kind)
        if kind not in opened:
            opened[kind] = LlamaCpp(path, args)
        models[scheme] = opened[kind]
    with busy_loops(args.busy):
        rounds = compare(args, models)
    for (scheme, work), found in rounds.items():
        median, least = (statistics.median(column) for column in zip(*found))
        low, high = min(row[0] for row in found), max(row[0] for row in found)
        print(f"{scheme:10} {work:8} median: {median:.2f} times as fast as llama.cpp ({low:.2f} to "
              f"{high:.2f}), by the least times {least:.2f}")


if __name__ == "__main__":
    sys.exit(main())
