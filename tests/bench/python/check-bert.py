#!/usr/bin/env python3
"""check-bert.py --bin BUILD - source-language-bert against reference results of transformers.

Float: logits of all held-out snippets and the hidden states after the embeddings and after every
layer are compared with the checkpoint's reference.safetensors and trace.safetensors.  Int8: every
calibration method, with float and with int8 residual sums, from one pass over the samples;
accuracy, and agreement of the predicted class with float.  Prints two Markdown tables; exit status
1 when a bound is missed.

The model is in --model, by default $FT_MODELS/source-language-bert.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments, largest_difference  # noqa: E402

LOGITS_TOLERANCE = 5e-4     # both sides sum in float32, in other orders; logits are below 10
HIDDEN_TOLERANCE = 1e-3     # values up to 10, after up to 4 layers
ACCURACY = 0.8625           # transformers, float32: 414 of 480
INT8_ACCURACY = 0.850
INT8_AGREEMENT = 0.975

METHODS = {                 # name in the table: arguments of ft-calibrate
    "max": ("-m", "max"),
    "percentile 99.99": ("-m", "percentile", "--percentile", "99.99"),
    "mse": ("-m", "mse"),
    "auto": ("-m", "auto"),
    "entropy": ("-m", "entropy"),
}
REQUIRED = ("max", "percentile 99.99", "mse", "auto")   # with float residual sums


def accuracy_of(check, logits):
    return float(np.mean(logits.argmax(1) == check.reference["labels"]))


def unpadded(values, mask):
    """[tokens, hidden] from [rows, length, hidden], the order of ft-run's packed values."""
    return values[mask != 0]


def check_float(check):
    """Converts, compares logits and hidden states; returns FT's logits."""
    artifact = check.artifact("float")
    check.tools.run("ft-convert", "-i", check.model, "-o", artifact)
    logits = check.run(artifact, check.file("reference"))["logits"]

    print("| float artifact | largest difference | bound | kept |\n|---|---|---|---|")

    check.row(f"logits, {len(logits)} snippets",
              largest_difference(logits, check.reference["logits"]), LOGITS_TOLERANCE)
    for name, difference in hidden_differences(check, artifact):
        check.row(name, difference, HIDDEN_TOLERANCE)
    accuracy = accuracy_of(check, logits)
    print(f"| accuracy {accuracy:.4f} | {abs(accuracy - ACCURACY):.4f} | {ACCURACY} exactly | "
          f"{check.bound(accuracy == ACCURACY)} |\n", flush=True)
    return logits


def hidden_differences(check, artifact):
    """(name, largest difference) of the embeddings and each layer, over the trace's tokens."""
    trace = check.read("trace")
    layers = sum(name.startswith("hidden_") for name in trace) - 1
    names = ["embed.norm"] + [f"layer.{i}.ffn.norm" for i in range(layers)]
    rows = len(trace["hidden_0"])
    inputs = {name: check.reference[name][:rows] for name in ("input_ids", "attention_mask")}
    keep = [argument for name in names for argument in ("--keep", name)]
    found = check.run(artifact, check.inputs(**inputs), *keep)
    for i, name in enumerate(names):
        expected = unpadded(trace[f"hidden_{i}"], inputs["attention_mask"])
        yield name, largest_difference(found[name], expected)


def check_int8(check, float_logits):
    print("| method | residual | accuracy | argmax as float | bounds kept |\n|---|---|---|---|---|")
    counters = os.path.join(check.work, "counters")
    check.tools.run("ft-calibrate", "-i", check.artifact("float"),
                    "-d", check.file("calibration"), "--save-counters", counters)
    for residual in ("float", "int8"):
        for name, arguments in METHODS.items():
            artifact = check.artifact("int8")
            check.tools.run("ft-calibrate", "-i", check.artifact("float"), "-o", artifact, "-f",
                            "--merge", counters, "--residual", residual, *arguments)
            logits = check.run(artifact, check.file("reference"))["logits"]
            accuracy = accuracy_of(check, logits)
            agreement = float(np.mean(logits.argmax(1) == float_logits.argmax(1)))
            kept = "none set"
            if residual == "float" and name in REQUIRED:
                kept = check.bound(accuracy >= INT8_ACCURACY and agreement >= INT8_AGREEMENT)
            print(f"| {name} | {residual} | {accuracy:.4f} | {100 * agreement:.2f} % | {kept} |",
                  flush=True)
    print(f"\nBounds: accuracy at least {INT8_ACCURACY:.3f}, argmax as float in at least "
          f"{100 * INT8_AGREEMENT:.1f} % of the snippets.")


def main():
    args = arguments("source-language-bert",
                     "compare source-language-bert with its reference").parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Check(args, work)
        check_int8(check, check_float(check))
        sys.exit(0 if check.passed else 1)


if __name__ == "__main__":
    main()
