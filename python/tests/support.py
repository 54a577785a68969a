"""Models for the tests: generated ones, and the trained ones of FT_MODELS; ft-run as the reference.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import functools
import json
import os
import shutil
import struct
import subprocess
import tempfile
import zlib

import ftruntime as ft

SOURCES = os.environ["FT_SRCDIR"]
BUILD = os.environ["FT_BUILDDIR"]
TRAINED = os.environ.get("FT_MODELS")

FOLDER = tempfile.mkdtemp(prefix="ftruntime-tests-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

TOKENS = '{"architectures": ["BertForTokenClassification"]}'
SPAN = '{"architectures": ["BertForQuestionAnswering"]}'
MASKED = '{"architectures": ["BertForMaskedLM"]}'

# What makes a checkpoint: a program and its arguments, with {} for the folder.
GENERATED = {
    "classifier": ("make-classifier", "{}", "3"),
    "multi": ("make-classifier", "{}", "3", '{"problem_type": "multi_label_classification"}'),
    "regression": ("make-classifier", "{}", "1", '{"problem_type": "regression"}'),
    "embedder": ("make-classifier", "{}", "0"),
    "prompted": ("make-classifier", "{}", "0"),
    "tokens": ("make-classifier", "{}", "5", TOKENS),
    "span": ("make-classifier", "{}", "2", SPAN),
    "masked": ("make-classifier", "{}", "1", MASKED),
    "vit": ("make-checkpoint", "vit", "{}"),
    "decoder": ("make-decoder", "{}", "7"),
    "translator": ("make-checkpoint", "translator", "{}"),
}

# Files of checkpoints besides.
FILES = {
    "prompted": {
        "config_sentence_transformers.json":
            '{"prompts": {"query": "a b ", "passage": "c "}, "default_prompt_name": "query"}',
    },
}


# Special tokens that are not in their tokenizer.json.
SPECIAL = {
    "masked": {"id": 4, "content": "[MASK]", "single_word": False, "lstrip": False,
               "rstrip": False, "normalized": False, "special": True},
}


@functools.lru_cache(maxsize=None)
def generated(name):
    """The path of a small random artifact."""
    program, *arguments = GENERATED[name]
    folder = os.path.join(FOLDER, name)
    command = [os.path.join(BUILD, "tests/programs", program),
               *(folder if argument == "{}" else argument for argument in arguments)]
    subprocess.run(command, check=True)
    for file, text in FILES.get(name, {}).items():
        with open(os.path.join(folder, file), "w") as out:
            out.write(text)
    if name in SPECIAL:
        edit(os.path.join(folder, "tokenizer.json"), added_tokens=[SPECIAL[name]])
    return converted(folder, name)


@functools.lru_cache(maxsize=None)
def trained(name):
    """The path of an artifact of a trained model; None without FT_MODELS."""
    if TRAINED is None or not os.path.isdir(os.path.join(TRAINED, name)):
        return None
    return converted(os.path.join(TRAINED, name), name)


@functools.lru_cache(maxsize=None)
def unnamed(name):
    """The path of an artifact of a trained model without the names of its labels."""
    source, folder = os.path.join(TRAINED, name), os.path.join(FOLDER, name + "-unnamed")
    shutil.copytree(source, folder)
    with open(os.path.join(source, "config.json")) as file:
        labels = len(json.load(file)["id2label"])
    edit(os.path.join(folder, "config.json"), id2label=None, label2id=None, num_labels=labels)
    return converted(folder, name + "-unnamed")


def edit(path, **members):
    """Set members of a JSON file; None removes one."""
    with open(path, encoding="utf-8") as file:
        found = {**json.load(file), **members}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({name: value for name, value in found.items() if value is not None}, file)


def converted(checkpoint, name):
    path = os.path.join(FOLDER, name + ".ft")
    ft.convert(checkpoint, path)
    return path


def models(small, large):
    """The generated model, and the trained one where there is one."""
    return [path for path in (generated(small), trained(large)) if path is not None]


def run(path, *arguments):
    """The results of ft-run."""
    command = [os.path.join(BUILD, "ft-run"), "-i", path, "--json", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)["results"]


def png(pixels):
    """The bytes of a PNG file of an array uint8 [height, width, 3]."""
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks)
