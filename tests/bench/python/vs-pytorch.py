#!/usr/bin/env python3
"""vs-pytorch.py --bin BUILD - one encoder, timed in PyTorch and in this project.

A BERT of the size of bert-base (different random weights in each: the time does not depend on them)
runs in ft-bench, and in PyTorch in float16 or bfloat16 with scaled dot product attention in three variants:
transformers' BertModel, eager and compiled with CUDA graphs (mode "reduce-overhead"), and a minimal
encoder (lib/lean_bert.py), compiled in the same way.  The fastest of them is the baseline.

For each case the two are timed in alternating blocks, because a GPU lowers its clock under sustained
load.  PyTorch's ids are already on the device; ft-bench uploads its ids in every run.  A run ends
when the device has finished it; besides these latencies the script prints the times of runs that are
queued and synchronized together.

A case is SEQUENCESxLENGTH, or with @FILL ft-bench's run of sequences whose mean length is that
fraction, compared with its run of full ones: the cost of padding tokens.

Needs torch, transformers, and a GPU; --ours omits the first two.  Compiling takes most of the time:
about half a minute per case.  No case starts after --limit seconds.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "python"))
from tools import Tools  # noqa: E402

# The target speedup over the fastest PyTorch on an H200: minimum and goal.  For mean length 0.6: over
# FT's own padded run.
WANTED = {"1x128": (2.5, 4.0), "8x128": (2.2, 3.0), "32x128": (2.2, 2.8), "128x128": (2.4, 2.9),
          "32x384": (2.2, 2.7), "32x384@0.6": (1.5, 1.65)}
SIZES = {"bert-base": (12, 768, 12, 3072), "bert-large": (24, 1024, 16, 4096)}
WAYS = ("eager", "compiled", "lean")
VOCABULARY = 30522
DTYPES = {"f16": "float16", "bf16": "bfloat16"}
WARM_S = 0.3            # of runs before each block: the clock rises, caches fill


class Case:
    """SEQUENCESxLENGTH[@FILL]"""

    def __init__(self, text):
        shape, _, fill = text.partition("@")
        rows, _, length = shape.partition("x")
        try:
            self.rows, self.length, self.fill = int(rows), int(length), float(fill or 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text}: expected something like 32x384@0.6")
        self.name, self.full = text, shape

    @property
    def is_full(self):
        return self.fill == 1


class Times:
    """Milliseconds of one program in one case: blocks of (latency, queued)."""

    def __init__(self):
        self.latencies, self.queues = [], []

    def add(self, latency, queued):
        self.latencies.append(latency)
        self.queues.append(queued)

    @property
    def latency(self):
        return statistics.median(self.latencies)

    @property
    def queued(self):
        return statistics.median(self.queues)


# ---- PyTorch -------------------------------------------------------------------------------------

class PyTorch:
    """One model, eager and compiled."""

    def __init__(self, args, positions):
        import torch
        from lean_bert import LeanBert
        self.torch = torch
        layers, hidden, heads, ffn = SIZES[args.shape]
        self.on_gpu = args.device.startswith("cuda")
        self.device = device = args.device
        torch.manual_seed(1)
        dtype = torch.float32 if not self.on_gpu else getattr(torch, DTYPES[args.dtype])
        self.dtype = str(dtype).replace("torch.", "")
        mode = "reduce-overhead" if self.on_gpu else "default"
        self.ways = {}
        if not args.lean:
            model = self.transformers_model(args, positions)
            self.model = model.to(device=device, dtype=dtype).eval()
            if not args.no_eager:
                self.ways["eager"] = self.model
            if not args.no_compile:
                self.ways["compiled"] = torch.compile(self.model, mode=mode, dynamic=False)
        if not args.no_compile:
            with torch.device(device):
                lean = LeanBert(layers, hidden, heads, ffn, VOCABULARY, positions)
            self.ways["lean"] = torch.compile(lean.to(dtype=dtype).eval(), mode=mode, dynamic=False)

    @staticmethod
    def transformers_model(args, positions):
        from transformers import AutoModel, BertConfig
        layers, hidden, heads, ffn = SIZES[args.shape]
        config = BertConfig(num_hidden_layers=layers, hidden_size=hidden, vocab_size=VOCABULARY,
                            num_attention_heads=heads, intermediate_size=ffn,
                            max_position_embeddings=positions)
        return AutoModel.from_config(config, attn_implementation="sdpa")

    def describe(self):
        name = self.torch.cuda.get_device_name(self.device) if self.on_gpu else "cpu"
        return f"PyTorch {self.torch.__version__} on {name}, {self.dtype}"

    def wait(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def ids(self, case):
        return self.torch.randint(VOCABULARY, (case.rows, case.length), device=self.device)

    def compile(self, ids):
        """Seconds until every variant has run this shape: compilation and graph capture."""
        start = time.perf_counter()
        with self.torch.no_grad():
            for run in self.ways.values():
                for _ in range(4):
                    run(ids)
                    self.wait()
        return time.perf_counter() - start

    def time(self, way, ids, runs):
        """(median latency, queued) in ms."""
        run, latencies = self.ways[way], []
        with self.torch.no_grad():
            start = time.perf_counter()
            while time.perf_counter() - start < WARM_S:
                run(ids)
                self.wait()
            for _ in range(runs):
                start = time.perf_counter()
                run(ids)
                self.wait()
                latencies.append(1e3 * (time.perf_counter() - start))
            start = time.perf_counter()
            for _ in range(runs):
                run(ids)
            self.wait()
            return statistics.median(latencies), 1e3 * (time.perf_counter() - start) / runs


# ---- This project --------------------------------------------------------------------------------

def time_ours(tools, case, scheme, args):
    """(median latency, queued) in ms; a device that does not queue has no second one."""
    text = tools.run("ft-bench", "--shape", args.shape, "--scheme", scheme, "-b", case.rows,
                     "-l", case.length, "--fill", case.fill, "-r", args.runs,
                     "--device", args.device, "--json")
    row = json.loads(text)["cases"][0]
    return row["median_ms"], row.get("queued_ms", row["median_ms"])


def measure(case, args, tools, torch, known):
    """{ side: Times } of one case, in rounds; `known` are the results of earlier cases."""
    times, ids = {}, None
    if torch is not None and case.is_full:
        ids = torch.ids(case)
        seconds = torch.compile(ids)
        print(f"{case.name}: PyTorch is ready after {seconds:.0f} s", file=sys.stderr, flush=True)
    padded = [] if case.is_full or case.full in known else [Case(case.full)]
    for _ in range(args.rounds):
        for way in torch.ways if ids is not None else ():
            times.setdefault(way, Times()).add(*torch.time(way, ids, args.runs))
        for scheme in args.schemes:
            times.setdefault(scheme, Times()).add(*time_ours(tools, case, scheme, args))
            for full in padded:
                times.setdefault("padded " + scheme, Times()).add(
                    *time_ours(tools, full, scheme, args))
    for scheme in args.schemes:
        if not case.is_full and not padded:
            times["padded " + scheme] = known[case.full][scheme]
    return times


# ---- Report --------------------------------------------------------------------------------------

def rival_of(case, scheme, times):
    """The program to which WANTED refers."""
    if not case.is_full:
        return "padded " + scheme
    return min((way for way in WAYS if way in times), key=lambda way: times[way].latency,
               default=None)


def report(case, args, times):
    """Rows of the table, printed and returned."""
    rows = []
    for scheme in args.schemes:
        ours, rival = times[scheme], rival_of(case, scheme, times)
        row = {"case": case.name, "scheme": scheme, "rival": rival, "ours_ms": ours.latency,
               "ours_queued_ms": ours.queued}
        if rival is not None:
            row["rival_ms"], row["rival_queued_ms"] = times[rival].latency, times[rival].queued
            row["ratio"] = row["rival_ms"] / row["ours_ms"]
            row["queued_ratio"] = row["rival_queued_ms"] / row["ours_queued_ms"]
        for way in WAYS:
            if way in times:
                row[way + "_ms"], row[way + "_queued_ms"] = times[way].latency, times[way].queued
        rows.append(row)
        print("| " + " | ".join(cells_of(row, case)) + " |", flush=True)
    return rows


def verdict(wanted, ratio):
    """The target, and whether it was reached."""
    least, goal = wanted
    if ratio is None:
        reached = ""
    elif ratio >= goal:
        reached = ": both"
    else:
        reached = ": the first" if ratio >= least else ": neither"
    return f"{least} / {goal}{reached}"


def cells_of(row, case):
    def number(key, digits=3):
        return f"{row[key]:.{digits}f}" if key in row else ""
    wanted = verdict(WANTED[case.name], row.get("ratio")) if case.name in WANTED else ""
    return (row["case"], row["scheme"], *(number(way + "_ms") for way in WAYS),
            number("ours_ms"), row["rival"] or "", number("ratio", 2), wanted,
            number("rival_queued_ms"), number("ours_queued_ms"), number("queued_ratio", 2))


HEADINGS = ("case", "scheme", *(way + " ms" for way in WAYS), "FT ms", "against", "times faster",
            "at least / hoped for: reached", "queued: other ms", "FT ms", "times faster")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="build or installation folder")
    parser.add_argument("--cases", default=",".join(WANTED), help="default: %(default)s")
    parser.add_argument("--shape", default="bert-base", choices=SIZES)
    parser.add_argument("--schemes", default="int8", help="of ft-bench, by commas; default int8")
    parser.add_argument("--device", default="cuda", help="default: cuda")
    parser.add_argument("--runs", type=int, default=50, help="of one block; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="blocks; default: %(default)s")
    parser.add_argument("--limit", type=float, default=420, help="seconds; default: %(default)s")
    parser.add_argument("--no-compile", action="store_true", help="eager PyTorch only")
    parser.add_argument("--no-eager", action="store_true", help="compiled PyTorch only")
    parser.add_argument("--lean", action="store_true", help="of PyTorch, the lean encoder only")
    parser.add_argument("--dtype", default="f16", choices=DTYPES,
                        help="of PyTorch on a GPU; default: f16")
    parser.add_argument("--ours", action="store_true", help="ft-bench only, without PyTorch")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    args = parser.parse_args()
    args.schemes = args.schemes.split(",")
    try:
        args.cases = [Case(text) for text in args.cases.split(",")]
    except argparse.ArgumentTypeError as wrong:
        parser.error(str(wrong))
    if args.runs < 1 or args.rounds < 1:
        parser.error("--runs and --rounds are at least 1")
    if args.no_compile and (args.no_eager or args.lean):
        parser.error("--no-compile with --no-eager or --lean leaves nothing; --ours is for that")
    return args


def main():
    args = parse()
    start, tools, torch, rows, known = time.perf_counter(), Tools(args.bin), None, [], {}
    if not args.ours:
        positions = max([512] + [case.length for case in args.cases])
        torch = PyTorch(args, positions)
        print(f"{torch.describe()}, {args.shape}, {args.rounds} blocks of {args.runs}")
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|", flush=True)
    for case in args.cases:
        if time.perf_counter() - start > args.limit:
            print(f"{case.name}: not begun, --limit is over", file=sys.stderr)
            continue
        known[case.name] = measure(case, args, tools, torch, known)
        rows += report(case, args, known[case.name])
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                result = {"shape": args.shape, "device": args.device, "rows": rows}
                json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
