#!/usr/bin/env python3
"""vs-ctranslate2.py --bin BUILD - beam search of a translation model in int8, CTranslate2 and FT.

Both convert the same checkpoint, numbers-m2m, and translate the sources of its reference rows: all
in one call, and row by row.  CTranslate2 quantizes activations dynamically, so w8a8-dynamic is
comparable; w8a8 static is shown too.  tests/bench/search times FT, and CTranslate2 is timed through
its Python interface, in alternating blocks so that both meet the same load.  With two threads,
CTranslate2 may use both for one batch or one for each of two batches, with several batch sizes: its
best median counts.

The checkpoint's vocabulary is words without a tokenizer; the converter needs only names and ids from
a tokenizer, and gets an object that provides them.  Nothing else differs from
`ct2-transformers-converter`.

Needs ctranslate2, torch, transformers, numpy.  Exit status 1: fewer rows than --same are equal.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import re
import sys
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.converters import TransformersConverter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib", "python"))
import st  # noqa: E402
from reference import arguments, Check  # noqa: E402
from tools import machine  # noqa: E402

BEAMS, MOST_TOKENS = 4, 28
BLOCK_S, SWEEPS = 0.5, 10   # of a block: their time, and our sweeps, which take about as long
PAUSE_S = 0.2               # lets the threads of the side that ran last go to sleep


class Words:
    """The part of a tokenizer that the converter needs."""

    bos_token, pad_token, eos_token, unk_token = "<s>", "<pad>", "</s>", "<unk>"
    special_tokens_map = {}

    def __init__(self, model):
        with open(os.path.join(model, "vocab.json"), encoding="utf-8") as file:
            self.ids = json.load(file)
        self.unk_token_id = self.ids[self.unk_token]
        self.words = {index: word for word, index in self.ids.items()}

    def get_vocab(self):
        return self.ids

    def convert_ids_to_tokens(self, index):
        return self.words[index]


class Converter(TransformersConverter):
    def load_tokenizer(self, tokenizer_class, model_name_or_path, **kwargs):
        return Words(model_name_or_path)


class Theirs:
    """CTranslate2 with one division of the threads; `piece`: batch size, 0 for all."""

    def __init__(self, folder, words, intra, inter, piece):
        self.label = f"CTranslate2, {inter} x {intra} thread{'s' if intra > 1 else ''}"
        self.label += f", batches of {piece}" if piece else ""
        self.ours, self.words, self.piece, self.warm = False, words, piece, False
        self.translator = ctranslate2.Translator(folder, device="cpu", compute_type="int8",
                                                 intra_threads=intra, inter_threads=inter)

    def search(self, sources):
        return self.translator.translate_batch(
            sources, beam_size=BEAMS, length_penalty=1, max_decoding_length=MOST_TOKENS,
            max_batch_size=self.piece)

    def outputs(self, sources):
        """Ids of the best hypotheses, without end tokens."""
        return [[self.words.ids[word] for word in found.hypotheses[0]]
                for found in self.search(sources)]

    def sweep(self, sources, call):
        start = time.perf_counter()
        for i in range(0, len(sources), call):
            self.search(sources[i:i + call])
        return time.perf_counter() - start

    def seconds(self, sources, call):
        """The median of sweeps over all sources in BLOCK_S; the very first is not counted."""
        if not self.warm:
            self.sweep(sources, call)
        self.warm = True
        times = [self.sweep(sources, call)]
        while sum(times) < BLOCK_S:
            times.append(self.sweep(sources, call))
        return float(np.median(times))


class Ours:
    def __init__(self, check, artifact, label, threads):
        self.label, self.ours = label, True
        self.check, self.artifact, self.threads = check, check.artifact(artifact), threads

    def outputs(self, _):
        found = self.check.run(self.artifact, self.check.file("reference"), "--beams", BEAMS,
                               "--max-new-tokens", MOST_TOKENS)["output_ids"]
        return texts_of(found)

    def seconds(self, _, call):
        """The same by tests/bench/search, with a fixed number of sweeps."""
        text = self.check.tools.run("search", self.artifact, self.check.file("reference"),
                                    "-k", BEAMS, "-n", MOST_TOKENS, "-b", call,
                                    "-t", self.threads, "-r", SWEEPS)
        match = re.match(r"seconds (\S+) \S+, \d+ tokens", text)
        if match is None:
            sys.exit(f"search: expected a line of seconds and tokens, found: {text.strip()!r}")
        return float(match.group(1))


def texts_of(rows):
    """New ids of padded rows: after the start token, up to the end token."""
    pad, end = 1, 2
    return [[int(i) for i in row[1:] if i not in (pad, end)] for row in rows]


def tokens_of(texts):
    return sum(len(text) + 1 for text in texts)


def equal(one, other):
    return sum(a == b for a, b in zip(one, other))


def prepare(check):
    """Convert with both; returns CTranslate2's folder."""
    for name, scheme in (("dynamic", ["--scheme", "w8a8-dynamic"]),
                         ("static", ["-d", check.file("calibration")])):
        check.tools.run("ft-convert", "-i", check.model, "-o", check.artifact("float"), "-f")
        check.tools.run("ft-calibrate", "-i", check.artifact("float"), "-o", check.artifact(name),
                        "-f", "-q", *scheme)
    folder = os.path.join(check.work, "ctranslate2")
    Converter(check.model).convert(folder, quantization="int8", force=True)
    return folder


def time_all(field, sources, call, args):
    """The median of every candidate's blocks, which alternate."""
    times = {contender: [] for contender in field}
    for _ in range(args.rounds):
        for contender in field:
            time.sleep(PAUSE_S)
            times[contender].append(contender.seconds(sources, call))
    return {contender: float(np.median(seconds)) for contender, seconds in times.items()}


def print_table(field, outputs, medians, expected):
    best = {call: max(tokens_of(outputs[c]) / seconds for c, seconds in of_call.items()
                      if not c.ours) for call, of_call in medians.items()}
    dynamic = outputs[field[0]]
    heads = " | ".join(f"{call} a call, tokens/s | times" for call in medians)
    print(f"| | texts of transformers' float32 | of our dynamic | {heads} |")
    print("|---|---|---|" + "---|---|" * len(medians))
    for c in field:
        figures = ""
        for call, of_call in medians.items():
            speed = tokens_of(outputs[c]) / of_call[c]
            figures += f" {speed:.0f} | {speed / best[call]:.2f} |"
        print(f"| {c.label} | {equal(outputs[c], expected)} | {equal(outputs[c], dynamic)} |{figures}",
              flush=True)


def run(args, work):
    check, words = Check(args, work), Words(args.model)
    expected = texts_of(check.reference["beam4"])
    sources = [[words.words[int(i)] for i in row if i != words.ids[words.pad_token]]
               for row in check.reference["input_ids"]]
    folder = prepare(check)
    field = [Ours(check, "dynamic", "ours, w8a8-dynamic", args.threads),
             Ours(check, "static", "ours, w8a8", args.threads)]
    field += [Theirs(folder, words, intra, args.threads // intra, piece)
              for intra, piece in ((args.threads, 0), (1, 0), (1, 32), (1, 16), (1, 8))]
    print(f"{machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; "
          f"{args.threads} threads; CTranslate2 {ctranslate2.__version__}, "
          f"{len(sources)} sources, {BEAMS} beams\n")
    outputs = {contender: contender.outputs(sources) for contender in field}
    medians = {call: time_all(field, sources, call, args) for call in (len(sources), 1)}
    print_table(field, outputs, medians, expected)
    same = min(equal(outputs[c], outputs[field[0]]) for c in field if not c.ours)
    if same < args.same:
        sys.exit(f"only {same} of {len(sources)} texts are the same in both")


def main():
    parser = arguments("numbers-m2m", "time a translation model in CTranslate2 and in ours")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9, help="blocks of each program")
    parser.add_argument("--same", type=int, default=60, help="texts that must be equal in both")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        run(args, work)


if __name__ == "__main__":
    main()
