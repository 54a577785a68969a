#!/usr/bin/env python3
"""check-m2m.py --bin BUILD [--device cuda] - numbers-m2m against reference results of transformers.

Float: hidden states of encoder and decoder after the embeddings and after every layer, logits, and
the texts of greedy decoding and of four beams, with their scores, are compared with the
checkpoint's reference.safetensors and trace.safetensors; on a GPU also the float16 artifact's.
Quantized: how many texts of each scheme equal those of transformers in float32.  Prints Markdown
tables; exit status 1 when a bound is missed.

The model is in --model, by default $FT_MODELS/numbers-m2m.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments, largest_difference  # noqa: E402

HIDDEN_TOLERANCE = 1e-3     # both sides sum in float32, in other orders
SCORE_TOLERANCE = 1e-4
LEAST_SAME = 62             # of the 64 texts, quantized
PADDING = 1

SCHEMES = {                 # name in the table: arguments of ft-calibrate
    "w8a8-dynamic": ("--scheme", "w8a8-dynamic"),
    "w8a8, max": ("-m", "max"),
    "w8a8, percentile 99.99": ("-m", "percentile", "--percentile", "99.99"),
    "w8a8, mse": ("-m", "mse"),
}


class Translator(Check):
    """On one device."""

    def __init__(self, args, work):
        super().__init__(args, work)
        self.device = ("--device", args.device)
        self.sources = self.inputs(input_ids=self.reference["input_ids"])

    def convert(self, name, *args):
        self.tools.run("ft-convert", "-i", self.model, "-o", self.artifact(name), *args)
        return self.artifact(name)

    def texts(self, artifact, expected, *args):
        """Whether each text is the expected one, and its score if there is one."""
        width = expected.shape[1]
        found = self.run(artifact, self.sources, *self.device, "--max-new-tokens", width - 1, *args)
        ids = found["output_ids"]
        if "scores" not in found:       # prompts are sources: only what was chosen is new
            ids = generated(found, width)
        ids = np.pad(ids, ((0, 0), (0, width - ids.shape[1])), constant_values=PADDING)
        return (ids == expected).all(axis=1), found.get("scores")


def generated(found, width):
    """Texts without the padding after their end tokens."""
    ids = np.full((len(found["output_ids"]), width), PADDING, dtype=np.int32)
    for row, text, length in zip(ids, found["output_ids"], found["lengths"]):
        row[:length] = text[:length]
    return ids


def hidden_differences(check, artifact):
    """(name, largest difference) of both stacks: embeddings, layers and last norm; and the logits."""
    trace = {name: np.array(value) for name, value in check.read("trace").items()}
    inputs = {name: trace[name] for name in ("input_ids", "decoder_input_ids")}
    names = {}
    for half in ("encoder", "decoder"):
        layers = sum(name.startswith(half + "_hidden_") for name in trace) - 1
        sums = [f"{half}.layer.{i}.ffn.sum" for i in range(layers - 1)]
        for i, name in enumerate([f"{half}.embed", *sums, f"{half}.norm"]):
            names[name] = trace[f"{half}_hidden_{i}"]
    keep = [argument for name in names for argument in ("--keep", name)]
    found = check.run(artifact, check.inputs(**inputs), *check.device, "--outputs", "logits",
                      "--every-logits", *keep)
    check.inputs(input_ids=check.reference["input_ids"])    # the same file as check.sources
    target = inputs["decoder_input_ids"] != PADDING
    for name, expected in names.items():
        real = inputs["input_ids"] != PADDING if name.startswith("encoder") else target
        yield name, largest_difference(found[name], expected[real])
    logits = found["logits"]
    yield "logits", largest_difference(logits[target[:, :logits.shape[1]]], trace["logits"][target])


def row_of_texts(check, name, same, least):
    print(f"| {name} | {same} of 64 the same | {least} | {check.bound(same >= least)} |",
          flush=True)


def check_texts(check, name, artifact, least):
    """Rows: greedy texts, four beams, and the scores of equal texts."""
    same, _ = check.texts(artifact, check.reference["greedy"])
    row_of_texts(check, f"{name}: greedy", int(same.sum()), least)
    same, scores = check.texts(artifact, check.reference["beam4"], "--beams", "4")
    row_of_texts(check, f"{name}: 4 beams", int(same.sum()), least)
    return largest_difference(scores[same], check.reference["beam4_scores"][same])


def main():
    parser = arguments("numbers-m2m", "compare numbers-m2m with its reference")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda[:N]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Translator(args, work)
        print("| | largest difference | bound | kept |\n|---|---|---|---|")
        single = check.convert("float32", "--dtype", "f32")
        for name, difference in hidden_differences(check, single):
            check.row(f"float32: {name}", difference, HIDDEN_TOLERANCE)
        check.row("float32: scores of 4 beams", check_texts(check, "float32", single, 64),
                  SCORE_TOLERANCE)
        check_texts(check, "float16", check.convert("float"), LEAST_SAME)
        for name, how in SCHEMES.items():
            data = () if "dynamic" in name else ("-d", check.file("calibration"))
            check.tools.run("ft-calibrate", "-i", check.artifact("float"), "-o",
                            check.artifact("codes"), "-f", *data, *how)
            check_texts(check, name, check.artifact("codes"), LEAST_SAME)
        sys.exit(0 if check.passed else 1)


if __name__ == "__main__":
    main()
