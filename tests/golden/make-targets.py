#!/usr/bin/env python3
#
# make-targets.py - the token ids of source and target texts, as transformers encodes them.
#
#     python3 -m venv /tmp/venv
#     /tmp/venv/bin/pip install transformers==5.24.0 sentencepiece==0.2.3
#     /tmp/venv/bin/python tests/golden/make-targets.py
#
# loads translators of tokenizer-sources.jsonl in transformers, encodes pairs of texts with text_target,
# and writes beside itself
#
#     targets.json   a list of {"name": of the tokenizer, "source", "target": languages or null,
#                    "pairs": [[text, target text, [id of "input_ids", ...], [id of "labels", ...]], ...]}
#
# SPDX-License-Identifier: Apache-2.0

import json
import os
import shutil
import tempfile

import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
TRANSLATORS = [('m2m100', 'de', 'fr'), ('marian', None, None), ('mbart', 'de_DE', 'fr_XX'),
               ('mbart50', 'cs_CZ', 'de_DE')]
TEXTS = [('hello world', 'the world is'), ('a', 'b'), ('no', ''), ('It is 3 o\'clock.', 'They said: "no!"'),
         ('walking in the rain', 'words, words, words'), ('x y z', 'one two three four five six seven')]


def files_of(name):
    with open(os.path.join(HERE, 'tokenizer-sources.jsonl'), encoding='utf-8') as rows:
        return next(row[1] for row in map(json.loads, rows) if row[0] == name)


def fill(folder, files):
    for file, content in files.items():
        source = os.path.join(HERE, 'tokenizer-sources', content)
        if '{' not in content and '\n' not in content:
            shutil.copy(source, os.path.join(folder, file))
        else:
            with open(os.path.join(folder, file), 'w', encoding='utf-8') as out:
                out.write(content)


def encode(name, source, target):
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, files_of(name))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if source is not None:
        tokenizer.src_lang, tokenizer.tgt_lang = source, target
    pairs = []
    for text, target_text in TEXTS:
        ids = tokenizer(text, text_target=target_text)
        pairs.append([text, target_text, ids['input_ids'], ids['labels']])
    return {'name': name, 'source': source, 'target': target, 'pairs': pairs}


with open(os.path.join(HERE, 'targets.json'), 'w', encoding='utf-8') as out:
    rows = [json.dumps(encode(*translator)) for translator in TRANSLATORS]
    out.write('[' + ',\n '.join(rows) + ']\n')
