#!/usr/bin/env python3
"""check-groupwise.py --bin BUILD [--device cuda] - group-wise python-llama, on the CPU and a device.

For each group-wise scheme, and each dtype of the tables that stay float (which is the dtype of
values on a GPU; the CPU computes in float32), both devices continue the prompts of the checkpoint's
reference.safetensors greedily.  Prints the number of equal tokens of each prompt and, at the first
difference, the margins: by how much each device's logit of its own token exceeds that of the
other's token.  Texts diverge after different tokens, so all later tokens count as different.  Then
prints the perplexity of both on the held-out rows.  Exit status 1 when a bound is missed.

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
from reference import Check, arguments  # noqa: E402

SCHEMES = ("w4a16", "w8a16", "w8a8-block")
DTYPES = ("f32", "f16", "bf16")
NEW_TOKENS = 64
# The minimum number of equal tokens of each prompt for f32 or f16 values.  None for int8
# activations: a value that rounds differently changes by 1/127 of its group's amax, and so changes
# others in later layers.
SAME = {"w4a16": 60, "w8a16": 60}
PERPLEXITY = 15.6004    # transformers, float32
ABOVE = {"w8a16": 0.1}  # % above it at most; w4a16 by rounding to nearest has no bound
DEVICES_APART = 0.1     # % between the devices where values are f32 or f16


class Blocks(Check):
    """Two devices."""

    def __init__(self, args, work):
        super().__init__(args, work)
        self.devices = ("cpu", args.device)
        self.prompts = np.array(self.reference["prompts"])

    def make(self, scheme, dtype):
        source, artifact = self.artifact(dtype), self.artifact(f"{scheme}-{dtype}")
        if not os.path.exists(source):
            self.tools.run("ft-convert", "-q", "-i", self.model, "-o", source, "--dtype", dtype)
        self.tools.run("ft-calibrate", "-q", "-i", source, "-o", artifact, "--scheme", scheme)
        return artifact

    def continue_prompts(self, artifact, device):
        """Prompts and new tokens."""
        return self.run(artifact, self.inputs(input_ids=self.prompts), "--device", device,
                        "--max-new-tokens", NEW_TOKENS, "--ignore-end")["output_ids"]

    def margin(self, artifact, device, text, mine, other):
        """The logit of the next token that this device chose, less that of the other's."""
        logits = self.run(artifact, self.inputs(input_ids=text[np.newaxis]), "--device", device,
                          "--outputs", "logits")["logits"][0]
        return float(logits[mine]) - float(logits[other])

    def perplexity(self, artifact, device):
        out = self.tools.run("ft-eval", "-i", artifact, "-d", self.file("reference"), "--json",
                             "--device", device)
        tokens = self.read("reference")["input_ids"].shape[1]
        return float(np.exp(np.mean(json.loads(out)["nll"]) / (tokens - 1)))


def compare_tokens(check, artifact):
    """The number of equal new tokens of each prompt, and the margins of the first different ones."""
    ours, theirs = (check.continue_prompts(artifact, device) for device in check.devices)
    start = check.prompts.shape[1]
    same = (ours == theirs)[:, start:].sum(axis=1)
    ties = []
    for a, b in zip(ours, theirs):
        if (a == b).all():
            continue
        at = int(np.argmax(a != b))
        margins = (check.margin(artifact, device, a[:at], mine[at], other[at])
                   for device, mine, other in zip(check.devices, (a, b), (b, a)))
        ties.append(f"token {at - start}: " + " / ".join(f"{m:.2g}" for m in margins))
    return same, ties


def check_scheme(check, scheme, dtype):
    artifact = check.make(scheme, dtype)
    same, ties = compare_tokens(check, artifact)
    ours, theirs = (check.perplexity(artifact, device) for device in check.devices)
    above = [100 * (p / PERPLEXITY - 1) for p in (ours, theirs)]
    kept = dtype == "bf16" or (same.min() >= SAME.get(scheme, 0)
                               and abs(above[0] - above[1]) <= DEVICES_APART
                               and max(above) <= ABOVE.get(scheme, np.inf))
    print(f"| {scheme} | {dtype} | {' '.join(map(str, same))} | {'; '.join(ties) or 'none'} | "
          f"{ours:.5f} ({above[0]:+.3f} %) | {theirs:.5f} ({above[1]:+.3f} %) | "
          f"{'none set' if dtype == 'bf16' else check.bound(kept)} |", flush=True)


def main():
    parser = arguments("python-llama", "compare python-llama in blocks on two devices")
    parser.add_argument("--device", default="cuda", help="cuda[:N] (default), or cpu")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Blocks(args, work)
        print(f"| scheme | tables | the same of {NEW_TOKENS} | margins, cpu / {args.device} | "
              f"perplexity, cpu | perplexity, {args.device} | bounds kept |\n"
              "|---|---|---|---|---|---|---|")
        for scheme in SCHEMES:
            for dtype in DTYPES:
                check_scheme(check, scheme, dtype)
        sys.exit(0 if check.passed else 1)


if __name__ == "__main__":
    main()
