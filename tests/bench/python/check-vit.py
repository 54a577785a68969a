#!/usr/bin/env python3
"""check-vit.py --bin BUILD [--device cuda] - digits-vit against reference results of transformers.

Float: logits of all held-out images, and the hidden states after the embeddings and after every
layer, are compared with the checkpoint's reference.safetensors and trace.safetensors.  Int8: every
calibration method, from one pass over the samples; accuracy, and agreement of the predicted class
with float.  Weight-only schemes too, where ft-calibrate has them.  With --processor, 24 images of
many kinds are compared with the output of transformers' ViTImageProcessor (needs torch,
torchvision, Pillow and transformers).  Prints Markdown tables; exit status 1 when a bound is
missed.

The model is in --model, by default $FT_MODELS/digits-vit.  Needs numpy.

SPDX-License-Identifier: Apache-2.0
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
from reference import Check, arguments, largest_difference  # noqa: E402

LOGITS_TOLERANCE = 5e-4     # both sides sum in float32, in other orders; logits are below 20
HIDDEN_TOLERANCE = 1e-3     # values up to 10, after up to 4 layers
ACCURACY = 0.9778           # transformers, float32: 176 of 180
LEAST_ACCURACY = 0.966
PIXEL_TOLERANCE = 1.001     # of 255 levels: resizing ends with a rounding on both sides

METHODS = {                 # name in the table: arguments of ft-calibrate
    "w8a8, max": ("-m", "max"),
    "w8a8, percentile 99.99": ("-m", "percentile", "--percentile", "99.99"),
    "w8a8, mse": ("-m", "mse"),
    "w8a8, auto": ("-m", "auto"),
    "w8a8, entropy": ("-m", "entropy"),
}
SCHEMES = {                 # patches are 48 wide: their last group is short
    "w8a16": ("--scheme", "w8a16", "--group-pad"),
    "w4a16, groups of 32": ("--scheme", "w4a16", "--group", "32", "--group-pad"),
}
REQUIRED = ("w8a8, max", "w8a8, percentile 99.99", "w8a8, mse", "w8a8, auto", *SCHEMES)


def accuracy_of(check, logits):
    return float(np.mean(logits.argmax(1) == check.reference["labels"]))


def check_float(check, device):
    """Converts, compares logits and hidden states; returns FT's logits."""
    artifact = check.artifact("float")
    check.tools.run("ft-convert", "-i", check.model, "-o", artifact)
    trace = check.read("trace")
    layers = sum(name.startswith("hidden_") for name in trace) - 1
    names = ["embed"] + [f"layer.{i}.ffn.sum" for i in range(layers)]
    keep = [argument for name in names for argument in ("--keep", name)]
    found = check.run(artifact, check.file("reference"), *keep, *device)

    print("| float artifact | largest difference | bound | kept |\n|---|---|---|---|")
    check.row(f"logits, {len(found['logits'])} images",
              largest_difference(found["logits"], check.reference["logits"]), LOGITS_TOLERANCE)
    for i, name in enumerate(names):
        expected = trace[f"hidden_{i}"]
        values = found[name].reshape(-1, *expected.shape[1:])[:len(expected)]
        check.row(name, largest_difference(values, expected), HIDDEN_TOLERANCE)
    accuracy = accuracy_of(check, found["logits"])
    kept = check.bound(round(accuracy, 4) == ACCURACY)
    print(f"| accuracy {accuracy:.4f} | {abs(accuracy - ACCURACY):.4f} | {ACCURACY} exactly | "
          f"{kept} |\n", flush=True)
    return found["logits"]


def has_schemes(check):
    return "w8a16" in check.tools.run("ft-calibrate", "--help")


def check_quantized(check, float_logits, device):
    print("| codes | accuracy | argmax as float | bounds kept |\n|---|---|---|---|")
    counters = os.path.join(check.work, "counters")
    check.tools.run("ft-calibrate", "-i", check.artifact("float"),
                    "-d", check.file("calibration"), "--save-counters", counters)
    ways = {name: ("--merge", counters, *how) for name, how in METHODS.items()}
    if has_schemes(check):
        ways.update(SCHEMES)
    for name, how in ways.items():
        artifact = check.artifact("codes")
        check.tools.run("ft-calibrate", "-i", check.artifact("float"), "-o", artifact, "-f", *how)
        logits = check.run(artifact, check.file("reference"), *device)["logits"]
        accuracy = accuracy_of(check, logits)
        agreement = float(np.mean(logits.argmax(1) == float_logits.argmax(1)))
        kept = check.bound(accuracy >= LEAST_ACCURACY) if name in REQUIRED else "none set"
        print(f"| {name} | {accuracy:.4f} | {100 * agreement:.2f} % | {kept} |", flush=True)
    print(f"\nBound: accuracy at least {LEAST_ACCURACY}.\n")


# ---- Images -------------------------------------------------------------------------------------


def processed(path, settings):
    """The output of the published image processor, in levels of 0 to 255."""
    from PIL import Image
    from transformers import ViTImageProcessor
    with Image.open(path) as image:
        values = ViTImageProcessor(**settings)(images=image.convert("RGB"), return_tensors="np")
    return (values["pixel_values"][0] * 0.5 + 0.5) * 255


def check_processor(check):
    """ft-run --image, through a model that returns its patches."""
    settings = {"do_resize": True, "size": {"height": 32, "width": 32}, "resample": 2,
                "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    folder, artifact = os.path.join(check.work, "model"), check.artifact("images")
    shutil.copytree(check.model, folder)
    os.chmod(folder, 0o755)
    with open(os.path.join(folder, "preprocessor_config.json"), "w", encoding="ascii") as file:
        json.dump({**settings, "image_processor_type": "ViTImageProcessor"}, file)
    check.tools.run("ft-convert", "-i", folder, "-o", artifact)
    images = [path for kind in ("png", "jpg")
              for path in sorted(glob.glob(os.path.join(HERE, "../../golden/images/*." + kind)))
              if not os.path.basename(path).startswith("bad-")]
    out = os.path.join(check.work, "patches.safetensors")
    subprocess.run([check.tools.path("ft-run"), "-i", artifact, "-o", out, "-f", "--keep",
                    "embed.patches", "--image", *images], check=True, stdout=subprocess.DEVNULL)
    import st
    rows = np.array(st.read(out)["embed.patches"]).reshape(len(images), 65, 3, 4, 4)[:, 1:]
    pixels = rows.reshape(-1, 8, 8, 3, 4, 4).transpose(0, 3, 1, 4, 2, 5).reshape(-1, 3, 32, 32)
    print("| image | largest difference of 255 | bound | kept |\n|---|---|---|---|")
    for path, found in zip(images, pixels):
        check.row(os.path.basename(path),
                  largest_difference((found * 0.5 + 0.5) * 255, processed(path, settings)),
                  PIXEL_TOLERANCE)


def main():
    parser = arguments("digits-vit", "compare digits-vit with its reference")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processor", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check = Check(args, work)
        device = ("--device", args.device)
        check_quantized(check, check_float(check, device), device)
        if args.processor:
            check_processor(check)
        sys.exit(0 if check.passed else 1)


if __name__ == "__main__":
    main()
