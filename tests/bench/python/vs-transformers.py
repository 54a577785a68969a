#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time Llama-2-7B's shape, random float16 weights, in transformers on a GPU: steps of decoding with
a static cache and a compiled model, and prompts without compilation.  Beside it runs ft-bench.

    python3 tests/bench/python/vs-transformers.py [--bench BUILD/ft-bench] [--batch 1,64] [--prompt 128,2048]
"""
import argparse
import statistics
import subprocess
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache


def median_ms(run, count):
    """The median of `count` synchronized calls after three warm-up calls."""
    times = []
    for i in range(count + 3):
        torch.cuda.synchronize()
        before = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - before))
    return statistics.median(times[3:])


def make_model():
    config = LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                         num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32,
                         max_position_embeddings=4096)
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model.eval()


def time_decoding(model, batch, context):
    """One token for each sequence, with `context` tokens in the KV cache."""
    ids = torch.randint(0, 32000, (batch, 1), device="cuda")
    cache = StaticCache(config=model.config, max_cache_len=context + 64)
    for first in range(0, context, 512 if batch == 1 else 64):
        last = min(first + (512 if batch == 1 else 64), context)
        part = torch.randint(0, 32000, (batch, last - first), device="cuda")
        model(part, past_key_values=cache, cache_position=torch.arange(first, last, device="cuda"),
              logits_to_keep=1)
    position = torch.tensor([context], device="cuda")
    step = torch.compile(model, mode="reduce-overhead", fullgraph=True)

    def run():
        torch.compiler.cudagraph_mark_step_begin()
        step(ids, past_key_values=cache, cache_position=position).logits.argmax(-1)

    return median_ms(run, 20)


def time_prompt(model, length):
    ids = torch.randint(0, 32000, (1, length), device="cuda")
    return median_ms(lambda: model(ids, use_cache=True, logits_to_keep=1), 10)


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bench")
    parser.add_argument("--batch", type=numbers, default=[1, 64])
    parser.add_argument("--prompt", type=numbers, default=[128, 2048])
    parser.add_argument("--context", type=int, default=512)
    args = parser.parse_args()
    with torch.no_grad():
        model = make_model()
        for length in args.prompt:
            print(f"transformers float16, prompt of {length}: {time_prompt(model, length):.2f} ms",
                  flush=True)
        for batch in args.batch:
            ms = time_decoding(model, batch, args.context)
            print(f"transformers float16, step of {batch} x {args.context}: {ms:.2f} ms, "
                  f"{1e3 * batch / ms:.0f} tokens/s", flush=True)
    del model
    torch.cuda.empty_cache()
    if args.bench:
        shape = [args.bench, "--shape", "llama-2-7b", "--scheme", "w8a8-dynamic", "--device", "cuda"]
        subprocess.run(shape + ["-b", "1", "-l", ",".join(map(str, args.prompt))], check=True)
        for batch, kv in ((1, "f16"), (64, "int8")):
            subprocess.run(shape + ["-b", str(batch), "--decode", str(args.context), "--kv", kv],
                           check=True)


if __name__ == "__main__":
    main()
