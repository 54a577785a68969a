#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time beam searches of a translator's shape with random weights: generate() of transformers, and
ft-bench.  Both find texts of the same length for as many sources, from ids to ids; transformers runs
before and after ft-bench, so that a clock that falls falls for both.

    python3 tests/bench/python/vs-transformers-nllb.py --bench BUILD/ft-bench [--shape nllb-600m] [--beams 4]
"""
import argparse
import json
import statistics
import subprocess
import time

import torch
import transformers
from transformers import M2M100Config, M2M100ForConditionalGeneration

SHAPES = {
    "nllb-600m": dict(vocab_size=256206, d_model=1024, layers=12, heads=16, ffn=4096),
    "ft-decoding": dict(vocab_size=30000, d_model=512, layers=6, heads=8, ffn=2048),
}


def config_of(name):
    shape = dict(SHAPES[name])
    layers, heads, ffn = (shape.pop(key) for key in ("layers", "heads", "ffn"))
    return M2M100Config(encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
                        decoder_attention_heads=heads, encoder_ffn_dim=ffn, decoder_ffn_dim=ffn,
                        activation_function="relu", scale_embedding=True,
                        max_position_embeddings=1024, attn_implementation="sdpa", **shape)


def make_model(args):
    torch.set_default_dtype(getattr(torch, args.dtype))
    with torch.device(args.device):
        model = M2M100ForConditionalGeneration(config_of(args.shape))
    torch.set_default_dtype(torch.float32)
    return model.eval()


def wait(args):
    if args.device != "cpu":
        torch.cuda.synchronize()


def search(model, ids, args):
    """Seconds until all texts are complete, each with the requested number of tokens."""
    wait(args)
    before = time.perf_counter()
    texts = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=args.beams,
                           min_new_tokens=args.new, max_new_tokens=args.new, do_sample=False,
                           use_cache=True)
    wait(args)
    seconds = time.perf_counter() - before
    assert texts.shape == (args.batch, 1 + args.new), texts.shape
    return seconds


def bench(args):
    """ft-bench's row of the same case."""
    command = [args.bench, "--shape", args.shape, "--scheme", args.scheme, "-b", str(args.batch), "-l",
               str(args.source), "--beams", str(args.beams), "--decode", str(args.new), "--device",
               args.device, "--json"]
    root = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    row, = root["cases"]
    assert (row["sources"], row["source_tokens"]) == (args.batch, args.batch * args.source), row
    assert (row["beams"], row["new_tokens"]) == (args.beams, args.new), row
    return row


def report(who, seconds, args):
    rate = args.batch * args.new / seconds
    print(f"{who}: {1e3 * seconds:.2f} ms, {rate:.0f} tokens/s", flush=True)
    return rate


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bench", required=True)
    parser.add_argument("--shape", choices=SHAPES, default="nllb-600m")
    parser.add_argument("--scheme", default="f16")
    parser.add_argument("--dtype", choices=["float16", "bfloat16", "float32"], default="float16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--source", type=int, default=32)
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--runs", type=int, default=4, help="before ft-bench, and after it")
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    with torch.inference_mode():
        model = make_model(args)
        ids = torch.randint(4, model.config.vocab_size, (args.batch, args.source), device=args.device)
        search(model, ids, args)
        seconds = [search(model, ids, args) for _ in range(args.runs)]
        ours = bench(args)
        search(model, ids, args)
        seconds += [search(model, ids, args) for _ in range(args.runs)]
    print(f"{args.shape}, {args.batch} sources of {args.source}, beams {args.beams}, "
          f"{args.new} new tokens, {args.device}")
    theirs = report(f"transformers {transformers.__version__}, torch {torch.__version__}, {args.dtype}",
                    statistics.median(seconds), args)
    rate = report(f"ft-bench, {args.scheme}", 1e-3 * ours["median_ms"], args)
    print(f"ratio: {rate / theirs:.2f}")


if __name__ == "__main__":
    main()
