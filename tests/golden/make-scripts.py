#!/usr/bin/env python3
#
# make-scripts.py - ask the `tokenizers` library which characters its UnicodeScripts keeps together.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3
#     /tmp/venv/bin/python tests/golden/make-scripts.py
#
# writes
#
#     runtime/text/unicode/scripts.def      {first, script} of each run of code points of one script
#     tests/golden/tokenizer-scripts.jsonl  [tokenizer.json, [[text, pair or null, digest], ...]]
#
# The second has the form of tokenizer-components.jsonl.  The pipelines there have sequences in
# sequences, which the library reads and flattens.  Script 0 is that of characters that go with any
# other; the others are numbered in the order of their first character.
#
# The files in the repository come from tokenizers 0.23.3 and Python 3.11.
#
# SPDX-License-Identifier: Apache-2.0

import hashlib
import json
import os
import random

from tokenizers import Tokenizer, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, '..', '..', 'runtime', 'text', 'unicode', 'scripts.def')
HEAD = '''/*
 * scripts.def - the first code point and the script of each run of code points of one script.
 *
 * tests/golden/make-scripts.py writes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
'''

# ---- Scripts -------------------------------------------------------------------------------------

SPLIT = pre_tokenizers.UnicodeScripts()
CODE_POINTS = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]


def together(text):
    return len(SPLIT.pre_tokenize_str(text)) == 1


def runs():
    """(first, script) of each run; the script of a character is that of the first one like it."""
    found, known, last = [], [], None
    for c in CODE_POINTS:
        char = chr(c)
        if together('a' + char) and together('\u0434' + char):
            script = 0
        else:
            script = next((s for s, other in known if together(other + char)), len(known) + 1)
            known = [(s, other) for s, other in known if s != script]
            known.insert(0, (script, char))  # the next character is often like this one
        if script != last:
            found.append((c, script))
            last = script
    return found


def write_table(table):
    rows = ['{ 0x%05x, %d },' % run for run in table]
    with open(TABLE, 'w', encoding='ascii') as file:
        file.write(HEAD)
        for i in range(0, len(rows), 5):
            file.write(' '.join(rows[i:i + 5]) + '\n')


# ---- Tokenizers ----------------------------------------------------------------------------------

R = random.Random(24)


def sequence(key, *steps):
    return {'type': 'Sequence', key: list(steps)}


def split(pattern, behavior='Isolated'):
    return {'type': 'Split', 'pattern': {'String': pattern}, 'behavior': behavior, 'invert': False}


SCRIPTS = {'type': 'UnicodeScripts'}
WHITESPACE = {'type': 'Whitespace'}
METASPACE = {'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'always', 'split': True}
PRE_TOKENIZERS = [
    SCRIPTS,
    sequence('pretokenizers', SCRIPTS, WHITESPACE),
    sequence('pretokenizers', sequence('pretokenizers', WHITESPACE, SCRIPTS)),
    sequence('pretokenizers', split(' '), sequence('pretokenizers', SCRIPTS)),
    sequence('pretokenizers', sequence('pretokenizers', METASPACE), SCRIPTS,
             sequence('pretokenizers', sequence('pretokenizers', {'type': 'Digits', 'individual_digits': True}))),
]
NORMALIZERS = [
    None,
    sequence('normalizers', {'type': 'NFKC'}, sequence('normalizers', {'type': 'Lowercase'})),
    sequence('normalizers', sequence('normalizers', {'type': 'Strip', 'strip_left': True, 'strip_right': True})),
]
POST_PROCESSORS = [
    None,
    sequence('processors', sequence('processors', {'type': 'BertProcessing', 'sep': ['[SEP]', 1], 'cls': ['[CLS]', 2]})),
]


def tokenizer(normalizer, pre, post):
    return {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': [], 'normalizer': normalizer,
            'pre_tokenizer': pre, 'post_processor': post, 'decoder': None,
            'model': {'type': 'WordLevel', 'unk_token': '[UNK]', 'vocab': {'[UNK]': 0, '[SEP]': 1, '[CLS]': 2}}}


def text(table):
    out = ''
    for _ in range(R.randrange(1, 10)):
        at = R.randrange(len(table) - 1)
        c = R.randrange(table[at][0], table[at + 1][0])
        out += chr(c if not 0xd800 <= c < 0xe000 else 0x2e80) * R.randrange(1, 3)
        out += R.choice(['', '', ' ', '  ', 'ab', '1', '\u30fc', '\u3042', '\u30a2', '\u6f22', '\u0434', '\u0301'])
    return R.choice(['', ' ']) + out.replace('\0', '')


def digest(tokenizer_, first, second):
    e = tokenizer_.encode(first, second) if second is not None else tokenizer_.encode(first)
    parts = json.dumps([e.ids, e.type_ids, [list(o) for o in e.offsets]], separators=(', ', ': '))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def main():
    table = runs()
    write_table(table)
    with open(os.path.join(HERE, 'tokenizer-scripts.jsonl'), 'w', encoding='utf-8') as file:
        for i in range(30):
            texts = [(text(table), text(table) if R.random() < 0.3 else None) for _ in range(16)]
            described = tokenizer(NORMALIZERS[i // 5 % 3], PRE_TOKENIZERS[i % 5], POST_PROCESSORS[i // 15])
            library = Tokenizer.from_str(json.dumps(described))
            rows = [[a, b, digest(library, a, b)] for a, b in texts]
            file.write(json.dumps([described, rows], ensure_ascii=True, separators=(',', ':')) + '\n')


if __name__ == '__main__':
    main()
