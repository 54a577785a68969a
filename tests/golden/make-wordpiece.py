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
import random

from tokenizers import AddedToken, Tokenizer
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
CASED = os.path.join(HERE, 'wordpiece-cased.json')
SAMPLE = os.path.join(HERE, '..', '..', 'samples', 'source-language-bert', 'tokenizer.json')

# ---- Lines ------------------------------------------------------------------------------------

CODE = [
    'for (int i = 0; i < n; i++) sum += a[i] * b[i];',
    'static const char *name_of(enum kind k) { return names[k]; }',
    '#include <stdint.h> // fixed widths',
    'template <typename T> T clamp(T x, T lo, T hi);',
    'std::vector<std::pair<int, std::string>> out{{1, "one"}};',
    'def mean(values): return sum(values) / max(len(values), 1)',
    'print(f"{name!r:>10} took {elapsed:.3f} s")',
    'my %count; $count{$_}++ for split /\\s+/, $text;',
    'if [ "$#" -lt 2 ]; then echo "usage: $0 FROM TO" >&2; exit 2; fi',
    'target_link_libraries(app PRIVATE ${ZLIB_LIBRARIES})',
    'x = y ? ~z : !w ^ (v << 3) | 0xDEADbeef & 017;',
    'SELECT a.id, COUNT(*) FROM "orders" AS a WHERE b >= \'2020-01-01\' GROUP BY 1;',
    '{"key": [1, 2.5e-3, null, true], "other": "\\u00e9"}',
]
ENGLISH = (
    'the quick brown fox jumps over a lazy dog while nobody is looking at unbelievable '
    'transformations of multilingual tokenization, which (as we know) isn\'t always easy: '
    'don\'t, can\'t, O\'Brien, well-known state-of-the-art, e.g. Mr. Smith\'s 2nd attempt; '
    'Reading WRITING McDonald iPhone NASA internationalization antidisestablishmentarianism'
).split()
ACCENTS = (
    'café naïve résumé Ångström Łódź œuvre smørrebrød Straße STRASSE ẞ İstanbul ISPARTA ıspanak '
    'Việt Nam điện phở Dvořák Čapek žluťoučký kůň ÀÉÎÕÜ ñandú Çelik Ğüzel ǅungla ŉ ǰ ΐ ﬁnal ﬃ '
    'ΟΔΥΣΣΕΥΣ Σίσυφος ΆΈΉ ᾳ ᾼ ἄνθρωπος Привет ЁЖИК Йогурт Ѐ Україна ҐЇ ԱՐԵՎ և'
).split()
SCRIPTS = (
    '中文分词 汉字 漢字 東京都 今日は 日本語のテキスト カタカナ ひらがな ガギグゲゴ ﾊﾝｶｸ 한국어 안녕하세요 각 값 '
    '豈更車 㐀䶵 𠀀𪛖 𫝀 𫠠𫢸 𬺰 𰀀 々〆〇 「括弧」 、。・ ｆｕｌｌ ＷＩＤＴＨ １２３ '
    'مرحبا بالعالم السَّلامُ عَلَيْكُمْ ٱلْحَمْدُ ، ؟ ۱۲۳ שָׁלוֹם עולם בְּרֵאשִׁית ״ '
    'नमस्ते दुनिया क़िताब ड़ । বাংলা ভাষা ਪੰਜਾਬੀ தமிழ் మీరు ಕನ್ನಡ മലയാളം සිංහල '
    'ไทย ภาษาไทย กำลัง ນ້ຳ '
    'བོད་སྐད། မြန်မာ ភាសាខ្មែរ ᠮᠣᠩᠭᠣᠯ አማርኛ ። ქართული ᲥᲐᲠᲗᲣᲚᲘ ᏣᎳᎩ Ꭰ ꭰ 𐐀𐐨 𞤀𞤢𞥄 𝒜𝔅ℂ ⓐⒶ 𝟘𝟙 Ⅷ ⅷ Å K Ω'
).split()
EMOJI = '😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ 1️⃣ 🤷🏿‍♀️ ☃ 🫠 🛸 ⌚︎ © ™️ 🧑‍💻'.split()


def characters(ranges):
    """'41-43 5a' is A, B, C, Z."""
    ends = [[int(end, 16) for end in part.split('-')] for part in ranges.split()]
    return [chr(c) for end in ends for c in range(end[0], end[-1] + 1)]


COMBINING = characters(
    '300-36f 483-487 591-5bd 64b-65f 20d0-20f0 302a-302f fe20-fe2f 93c 94d 903 e38 1100 1161 11a8 '
    '1d165 1d16d 1d16e 8d4 1dfb 1bf2 1bf3 a953 1e944'
)
INVISIBLE = characters(
    '0-1f 7f-a0 2000-200f 2028-202f 205f-206f ad 61c 180e 1680 3000 feff fff9 fffc fffd fffe ffff '
    'e0001 e0041 e000 f8ff f0000 10fffd 378 5ff 1fffe 2fe0 890 13430 110bd 110cd'
)
PUNCTUATION = characters(
    '21-2f 3a-40 5b-60 7b-7e a1-bf 2010-2027 2030-205e 3001-301f ff01-ff0f 37e 387 589 5be 60c '
    '61f 964 e4f 166d 2e18 2e43 2e4f 10100 111c9 1e95e 20ac 2200 d7 f7'
)
SPACES = [
    ' ', '  ', '\t', '\n', '\r\n', '\x0b', '\x0c', '\u0085', '\u00a0', '\u2003', '\u2028',
    '\u3000',
]
SPECIAL = [
    '[MASK]', '[CLS]', '[SEP]', '[PAD]', '[UNK]', '[mask]', '[MASK', 'MASK]', '[[MASK]]',
    '[MASK][SEP]', '<hold>', ' <hold> ', '<hold><hold>', '<left>', ' \t<left>', '<right> \u2003',
    'ing', 'Unit', 'unit', 'unités', '<left>ing', 'Éclair', 'eclair', 'ECLAIR', '_ing', 'ing.',
    '\u200ding', '<lefty>', '<lef',
]


def number(rng):
    return rng.choice([
        '%d' % rng.randrange(10 ** rng.randrange(1, 20)),
        '%.*f' % (rng.randrange(8), rng.random() * 1e4),
        '%e' % rng.random(), '0x%X' % rng.randrange(2 ** 32), '1,234,567', '12:34:56', '±3½²',
    ])


def url(rng):
    return rng.choice([
        'https://example.org/a/b?q=%d&r=é#x', 'user.name+tag@mail.example.com',
        'C:\\Temp\\x%d.txt', '/usr/share/doc/x-%d/README', 'git@host:me/repo.git',
        'www.münchen.example',
    ]).replace('%d', str(rng.randrange(1000)))


def long_word(rng):
    part = rng.choice(['a', 'ab', 'é', '가', '字', '\u0301', 'x\u0301', '😀', 'ΑΣ'])
    return part * rng.choice([33, 50, 99, 100, 101, 150])


def any_character(rng):
    while True:
        c = rng.randrange(0x110000) if rng.random() < 0.5 else rng.randrange(0x3000)
        if not 0xd800 <= c < 0xe000:
            return chr(c)


def stack(rng):
    """A letter under marks, in an order that need not be canonical."""
    marks = [rng.choice(COMBINING) for _ in range(rng.randrange(1, 6))]
    return rng.choice('aeoOZक가Åǖ') + ''.join(marks)


KINDS = [
    (4, lambda r: r.choice(CODE)),
    (6, lambda r: ' '.join(r.choice(ENGLISH) for _ in range(r.randrange(1, 9)))),
    (4, lambda r: r.choice(ACCENTS)),
    (3, stack),
    (6, lambda r: r.choice(SCRIPTS)),
    (3, lambda r: r.choice(EMOJI)),
    (4, lambda r: r.choice(INVISIBLE)),
    (3, lambda r: r.choice(PUNCTUATION)),
    (2, number),
    (2, url),
    (.3, long_word),
    (3, lambda r: r.choice(SPECIAL)),
    (3, any_character),
]


def line(rng):
    """A few fragments, some glued together, some apart."""
    weights = [weight for weight, _ in KINDS]
    text = rng.choice(SPACES) if rng.random() < .1 else ''
    for _, make in rng.choices(KINDS, weights, k=rng.randrange(1, 7)):
        text += make(rng)
        gap = rng.random()
        text += rng.choice(SPACES) if gap < .3 else ' ' if gap < .7 else ''
    return text


def lines(seed, count):
    rng = random.Random(seed)
    return ['', ' '] + [line(rng) for _ in range(count - 2)]


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

def visible(text):
    """JSON in which what cannot be seen is escaped."""
    return ''.join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def write(name, rows):
    path = os.path.join(HERE, name)
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        file.writelines(row + '\n' for row in rows)
    print(name, os.path.getsize(path), 'bytes')


def json_row(row):
    return visible(json.dumps(row, ensure_ascii=False, separators=(',', ':')))


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
