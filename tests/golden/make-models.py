#!/usr/bin/env python3
#
# make-models.py - ask the `tokenizers` library how random models of each kind split random words.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3
#     /tmp/venv/bin/python tests/golden/make-models.py
#
# writes models.jsonl beside itself: [kind, text of the section "model" of a tokenizer.json, alphabet,
# seed, number of words, digest]. The words come from the seed, as words() and tests/text/models-t.c
# make them. The digest is the SHA-256 of one line per word: "id:start-end" per token, in bytes of the
# word, separated by blanks. Scores have up to 17 digits, which the library's JSON reader rounds in its
# own way: ties depend on it.
#
# The file in the repository comes from tokenizers 0.23.3 and Python 3.11.
#
# SPDX-License-Identifier: Apache-2.0

import hashlib
import json
import os
import random

from tokenizers import Tokenizer

from varied_lines import json_row

HERE = os.path.dirname(os.path.abspath(__file__))
MASK = 2 ** 64 - 1
WORDS = 200
ALPHABETS = ['ab', 'abc', 'aab\xe9', 'ab\u5b57\u2581', 'abcdefgh', 'a\U0001f600b', '<unk>a', 'a0x<>12']


class Mixer:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9e3779b97f4a7c15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
        z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
        return (z ^ z >> 31) % limit


def words(alphabet, seed, count):
    mixer = Mixer(seed)
    for _ in range(count):
        length = 1 + mixer.below(24)
        yield ''.join(alphabet[mixer.below(len(alphabet))] for _ in range(length))


# ---- Models -------------------------------------------------------------------------------------


def piece(rng, alphabet, most=4):
    return ''.join(rng.choice(alphabet) for _ in range(rng.randint(1, most)))


def byte_pieces(rng, alphabet):
    """None, all or most of those that a word may need."""
    share = rng.choice([0, 0, 1, .8])
    return ['<0x%02X>' % i for i in sorted(set((alphabet + '#@<>/w').encode())) if rng.random() < share]


def unigram(rng, alphabet):
    scores = rng.choice([[-1, -2, -3], [-1.5, -2.25, -7.125, -3], [0, 0, 1, -4], [-2]])
    pieces = ['<unk>', '<s>'] + [c for c in alphabet if rng.random() < .7]
    pieces += [piece(rng, alphabet, rng.choice([3, 6])) for _ in range(rng.randint(0, 30))]
    pieces += byte_pieces(rng, alphabet)
    if rng.random() < .6:
        pieces = list(dict.fromkeys(pieces))
    if rng.random() < .2:
        pieces.append('')
    rng.shuffle(pieces)
    exact = rng.random() < .5
    return {'type': 'Unigram', 'unk_id': pieces.index('<unk>'),
            'vocab': [[p, rng.choice(scores) if exact else -rng.random() * 9] for p in pieces],
            'byte_fallback': rng.random() < .5}


def bpe(rng, alphabet):
    prefix = rng.choice([None, '', '##', '@'])
    suffix = rng.choice([None, '', '</w>'])
    vocab = ['<unk>'] + [c for c in alphabet if rng.random() < .8]
    vocab += [(prefix or '') + c for c in alphabet if rng.random() < .8]
    vocab += [c + (suffix or '') for c in alphabet if rng.random() < .8]
    vocab += [(prefix or '') + c + (suffix or '') for c in alphabet if rng.random() < .8]
    vocab = list(dict.fromkeys(vocab))
    merges = []
    for _ in range(rng.randint(0, 40)):
        left, right = rng.choice(vocab), rng.choice(vocab)
        if '<unk>' in (left, right) or not right.startswith(prefix or ''):
            continue
        merges.append([left, right])
        merged = left + right[len(prefix or ''):]
        if merged not in vocab:
            vocab.append(merged)
    vocab += [b for b in byte_pieces(rng, alphabet) if b not in vocab]
    return {'type': 'BPE', 'dropout': rng.choice([None, 0.0]),
            'unk_token': rng.choice([None, '<unk>', '<unk>']),
            'continuing_subword_prefix': prefix, 'end_of_word_suffix': suffix,
            'fuse_unk': rng.random() < .5, 'byte_fallback': rng.random() < .5,
            'ignore_merges': rng.random() < .3, 'vocab': {t: i for i, t in enumerate(vocab)},
            'merges': merges}


def word_level(rng, alphabet):
    vocab = list(dict.fromkeys(['<unk>'] + [piece(rng, alphabet, 3) for _ in range(20)]))
    return {'type': 'WordLevel', 'vocab': {t: i for i, t in enumerate(vocab)}, 'unk_token': '<unk>'}


def word_piece(rng, alphabet):
    pieces = [piece(rng, alphabet) for _ in range(15)] + ['##' + piece(rng, alphabet) for _ in range(15)]
    vocab = list(dict.fromkeys(['<unk>'] + pieces))
    return {'type': 'WordPiece', 'unk_token': '<unk>', 'continuing_subword_prefix': '##',
            'max_input_chars_per_word': rng.choice([100, 12]),
            'vocab': {t: i for i, t in enumerate(vocab)}}


# ---- Rows ---------------------------------------------------------------------------------------


def digest(model, alphabet, seed):
    tokenizer = Tokenizer.from_str('{"version":"1.0","added_tokens":[],"model":%s}' % model)
    total = hashlib.sha256()
    for word in words(alphabet, seed, WORDS):
        tokens = ['%d:%d-%d' % (t.id, *t.offsets) for t in tokenizer.model.tokenize(word)]
        total.update((' '.join(tokens) + '\n').encode())
    return total.hexdigest()[:16]


def main():
    rng = random.Random(11)
    kinds = [unigram] * 60 + [bpe] * 60 + [word_level] * 4 + [word_piece] * 8
    with open(os.path.join(HERE, 'models.jsonl'), 'w', encoding='utf-8') as out:
        for seed, kind in enumerate(kinds):
            alphabet = rng.choice(ALPHABETS)
            model = kind(rng, alphabet)
            text = json.dumps(model, ensure_ascii=False, separators=(',', ':'))
            row = [kind.__name__, text, alphabet, seed, WORDS, digest(text, alphabet, seed)]
            out.write(json_row(row) + '\n')


if __name__ == '__main__':
    main()
