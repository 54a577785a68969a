#!/usr/bin/env python3
#
# make-wordpiece.py - ask the `tokenizers` library what it makes of 1,000 varied lines, of every
# combination of the normalizer's steps, and of every code point.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3
#     /tmp/venv/bin/python tests/golden/make-wordpiece.py
#
# writes, beside itself:
#
#     wordpiece-lines.jsonl       ["text", ids of samples/source-language-bert, ids of -cased.json]
#     wordpiece-steps.jsonl       ["text", [clean, chinese, accents, lowercase], ids of the sample]
#     wordpiece-characters.txt    per 4,096 code points a digest of what normalizer and words do
#
# and, where it is not there yet, wordpiece-cased.json: a small cased tokenizer with every kind of
# added token.  Training breaks ties at random, so each would be another one.
#
# The files in the repository come from tokenizers 0.23.3 and Python 3.11.  Another version of
# Python draws other lines; another version of the library may know more lowercase letters.
#
# SPDX-License-Identifier: Apache-2.0

import glob
import hashlib
import itertools
import json
import os

from tokenizers import AddedToken, Tokenizer
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

from varied_lines import SCRIPTS, json_row, lines

HERE = os.path.dirname(os.path.abspath(__file__))
CASED = os.path.join(HERE, 'wordpiece-cased.json')
SAMPLE = os.path.join(HERE, '..', '..', 'samples', 'source-language-bert', 'tokenizer.json')

# ---- Tokenizers -------------------------------------------------------------------------------

def load(text):
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def train_cased():
    """Cased, accents kept; a template with two tokens in front; one added token of every kind."""
    tokenizer = Tokenizer(models.WordPiece(
        unk_token='<unk>', max_input_chars_per_word=40, continuing_subword_prefix='@@'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=False)])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    text = lines(1, 2000) + SCRIPTS * 2
    for path in sorted(glob.glob('/usr/share/common-licenses/*')):
        with open(path, encoding='utf-8', errors='ignore') as file:
            text += [] if os.path.islink(path) else file.readlines()
    tokenizer.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=2000, limit_alphabet=700, special_tokens=['<unk>', '<s>', '<e>'],
        continuing_subword_prefix='@@', show_progress=False))
    tokenizer.add_tokens([
        AddedToken('<left>', lstrip=True, normalized=False),
        AddedToken('<right>', rstrip=True, normalized=False),
        AddedToken('<hold>', lstrip=True, rstrip=True, normalized=False),
        AddedToken('<lefty>', normalized=False),
        AddedToken('ing', single_word=True, normalized=False),
        AddedToken('Unit\u2003\u0007', lstrip=True, normalized=True),
        AddedToken('Éclair', single_word=True, rstrip=True, normalized=True),
        AddedToken('字', normalized=True),
    ])
    ids = [(token, tokenizer.token_to_id(token)) for token in ('<s>', '<e>', '<hold>')]
    tokenizer.post_processor = processors.TemplateProcessing(
        single='<s> <hold> $A <e>', pair='<s> $A <e> $B:1', special_tokens=ids)
    return json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(',', ':'))


def with_steps(text, steps):
    tokenizer = load(text)
    tokenizer.normalizer = normalizers.BertNormalizer(*steps)
    return tokenizer


# ---- Files ------------------------------------------------------------------------------------

def write(name, rows):
    path = os.path.join(HERE, name)
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        file.writelines(row + '\n' for row in rows)
    print(name, os.path.getsize(path), 'bytes')


def digests():
    """Of each code point between letters: the four steps alone, the words before all steps and
    after them; and of its place among marks of three combining classes."""
    alone = [normalizers.BertNormalizer(*(i == k for i in range(4))) for k in range(4)]
    every = normalizers.BertNormalizer(True, True, True, True)
    split = pre_tokenizers.BertPreTokenizer()
    for first in range(0, 0x110000, 0x1000):
        digest = hashlib.sha256()
        for c in map(chr, range(first, first + 0x1000)):
            if '\ud800' <= c < '\ue000':
                continue
            text = 'A' + c + 'b'
            parts = [step.normalize_str(text) for step in alone]
            parts += [word for word, _ in split.pre_tokenize_str(text)]
            parts += [word for word, _ in split.pre_tokenize_str(every.normalize_str(text))]
            parts += [alone[2].normalize_str('\U0001d16d' + c + '\u302e\u1bf2' + c)]
            digest.update(''.join(part + '\n' for part in parts).encode())
        yield '%06x %s' % (first, digest.hexdigest()[:16])


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def step_rows(sample):
    settings = itertools.product([False, True], [False, True], [None, False, True], [False, True])
    for seed, steps in enumerate(settings):
        tokenizer = with_steps(sample, steps)
        for text in lines(100 + seed, 14)[2:]:
            yield json_row([text, steps, tokenizer.encode(text).ids])


def main():
    if not os.path.exists(CASED):
        write('wordpiece-cased.json', [train_cased()])
    sample, cased = load(read(SAMPLE)), load(read(CASED))
    write('wordpiece-lines.jsonl', (
        json_row([text, sample.encode(text).ids, cased.encode(text).ids])
        for text in lines(2, 1000)))
    write('wordpiece-steps.jsonl', step_rows(read(SAMPLE)))
    write('wordpiece-characters.txt', digests())


if __name__ == '__main__':
    main()
