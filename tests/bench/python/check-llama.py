#!/usr/bin/env python3
"""check-llama.py --bin BUILD [--device cuda] - python-llama against reference results of transformers.

Float: perplexity, logits of the prompts, hidden states after the embeddings and after every layer,
and greedy continuations are compared with the checkpoint's reference.safetensors and
trace.safetensors; on a GPU also the float16 artifact's.  Quantized: perplexity of each scheme and
calibration method with both KV caches, without and with SmoothQuant, on the held-out rows and on the
more numerous ones of calibration.safetensors, each with the standard error of its difference from
float.  Prints Markdown tables; exit status 1 when a bound is missed.

The model is in --model, by default $FT_MODELS/python-llama.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments, largest_difference  # noqa: E402

LOGITS_TOLERANCE = 1e-3     # both sides sum in float32, in other orders; logits reach 20
HIDDEN_TOLERANCE = 1e-3
PERPLEXITY = 15.6004        # transformers, float32
FLOAT_TOLERANCE = 0.02      # % of it
HALF_TOLERANCE = 0.1
DYNAMIC_TOLERANCE = 1.0     # % above float
NEW_TOKENS = 64
HALF_SAME = 3               # of the 4 prompts, in float16 at least

STATIC = {                  # name in the table: arguments of ft-calibrate
    "max": ("-m", "max"),
    "percentile 99.99": ("-m", "percentile", "--percentile", "99.99"),
    "mse": ("-m", "mse"),
    "entropy": ("-m", "entropy"),
}
SMOOTHED = {                # these need the samples: counters belong to the model without factors
    "w8a8-dynamic, smooth": ("--scheme", "w8a8-dynamic"),
    "w8a8, auto, smooth": ("-m", "auto"),
    "w8a8, percentile 99.99, smooth": ("-m", "percentile"),
}


class Llama(Check):
    """On one device."""

    def __init__(self, args, work):
        super().__init__(args, work)
        self.device = ("--device", args.device)
        self.float_nll = {}

    def nll(self, artifact, data, *args):
        """Negative log-likelihood of a token, for each row."""
        out = self.tools.run("ft-eval", "-i", artifact, "-d", self.file(data), "--json",
                             *self.device, *args)
        tokens = self.read(data)["input_ids"].shape[1]
        return np.array(json.loads(out)["nll"]) / (tokens - 1)

    def convert(self, name, *args):
        self.tools.run("ft-convert", "-i", self.model, "-o", self.artifact(name), *args)
        return self.artifact(name)

    def calibrate(self, name, *args):
        self.tools.run("ft-calibrate", "-i", self.artifact("float"), "-o", self.artifact(name),
                       "-f", *args)
        return self.artifact(name)

    def continuations(self, artifact):
        """The number of prompts whose continuation equals that of transformers."""
        found = self.run(artifact, self.inputs(input_ids=self.reference["prompts"]), *self.device,
                         "--max-new-tokens", NEW_TOKENS, "--ignore-end")["output_ids"]
        return int((found == self.reference["greedy"]).all(axis=1).sum())


def hidden_differences(check, artifact):
    """(name, largest difference) of the embeddings, each layer, and the last one's norm."""
    trace = check.read("trace")
    layers = sum(name.startswith("hidden_") for name in trace) - 1
    names = ["embed"] + [f"layer.{i}.ffn.sum" for i in range(layers - 1)] + ["norm"]
    rows = len(trace["hidden_0"])
    keep = [argument for name in names for argument in ("--keep", name)]
    found = check.run(artifact, check.inputs(input_ids=check.reference["prompts"][:rows]),
                      *check.device, "--outputs", "logits", *keep)
    for i, name in enumerate(names):
        expected = np.array(trace[f"hidden_{i}"])
        yield name, largest_difference(found[name], expected.reshape(-1, expected.shape[-1]))


def check_perplexity(check, name, artifact, tolerance):
    found = float(np.exp(check.nll(artifact, "reference").mean()))
    check.row(f"{name}: perplexity {found:.5f}, % off {PERPLEXITY}",
              100 * abs(found / PERPLEXITY - 1), tolerance)


def check_continuations(check, name, artifact, least):
    same = check.continuations(artifact)
    count = len(check.reference["greedy"])
    print(f"| {name}: continuations of {NEW_TOKENS} tokens | {same} of {count} the same | "
          f"{least} | {check.bound(same >= least)} |", flush=True)


def check_float(check):
    artifact = check.convert("float")
    single = check.convert("float32", "--dtype", "f32")
    prompts = check.inputs(input_ids=check.reference["prompts"])
    logits = check.run(single, prompts, *check.device, "--outputs", "logits",
                       "--every-logits")["logits"]
    print("| | largest difference | bound | kept |\n|---|---|---|---|")
    check_perplexity(check, "float32", single, FLOAT_TOLERANCE)
    check.row("float32: logits of the prompts",
              largest_difference(logits, np.array(check.reference["prompt_logits"])),
              LOGITS_TOLERANCE)
    for name, difference in hidden_differences(check, single):
        check.row(f"float32: {name}", difference, HIDDEN_TOLERANCE)
    check_continuations(check, "float32", single, len(check.reference["greedy"]))
    half = check.convert("float16", "--dtype", "f16")
    check_perplexity(check, "float16", half, HALF_TOLERANCE)
    check_continuations(check, "float16", half, HALF_SAME)
    check.float_nll = {data: check.nll(single, data) for data in ("reference", "calibration")}
    print()
    return artifact


def check_codes(check, name, artifact, cache, tolerance=None):
    """A row: perplexity on both sets of rows, and its excess over float."""
    cells, kept = [], "none set"
    for data, float_nll in check.float_nll.items():
        nll = check.nll(artifact, data, "--kv", cache)
        above = 100 * (nll - float_nll)
        error = above.std(ddof=1) / len(above) ** 0.5
        cells.append(f"{np.exp(nll.mean()):.5f} | {100 * np.expm1(above.mean() / 100):+.2f} % "
                     f"| {error:.2f} %")
        if data == "reference" and tolerance is not None:
            kept = check.bound(above.mean() <= tolerance)
    print(f"| {name} | {cache} | {' | '.join(cells)} | {kept} |", flush=True)


def check_schemes(check):
    print("| scheme | cache | held-out rows | above float | s.e. | calibration rows | above float "
          "| s.e. | bound kept |\n|---|---|---|---|---|---|---|---|---|")
    check_codes(check, "float32", check.artifact("float32"), "int8")
    dynamic = check.calibrate("dynamic", "--scheme", "w8a8-dynamic")
    check_codes(check, "w8a8-dynamic", dynamic, "f16", DYNAMIC_TOLERANCE)
    check_codes(check, "w8a8-dynamic", dynamic, "int8", DYNAMIC_TOLERANCE)
    counters = os.path.join(check.work, "counters")
    check.tools.run("ft-calibrate", "-i", check.artifact("float"),
                    "-d", check.file("calibration"), "--save-counters", counters)
    for name, args in STATIC.items():
        artifact = check.calibrate("static", "--merge", counters, *args)
        check_codes(check, f"w8a8, {name}", artifact, "f16")
    for name, args in SMOOTHED.items():
        artifact = check.calibrate("smooth", "-d", check.file("calibration"), "--smooth", "search",
                                   *args)
        check_codes(check, name, artifact, "f16",
                    DYNAMIC_TOLERANCE if "dynamic" in name else None)


def main():
    parser = arguments("python-llama", "compare python-llama with its reference")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda[:N]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Llama(args, work)
        check_float(check)
        check_schemes(check)
        sys.exit(0 if check.passed else 1)


if __name__ == "__main__":
    main()
