# varied_lines.py - lines of text of every kind that a tokenizer may meet, at random from a seed.
#
# SPDX-License-Identifier: Apache-2.0

import json
import random

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


def line(rng, kinds):
    """A few fragments, some glued together, some apart."""
    weights = [weight for weight, _ in kinds]
    text = rng.choice(SPACES) if rng.random() < .1 else ''
    for _, make in rng.choices(kinds, weights, k=rng.randrange(1, 7)):
        text += make(rng)
        gap = rng.random()
        text += rng.choice(SPACES) if gap < .3 else ' ' if gap < .7 else ''
    return text


def lines(seed, count, kinds=KINDS):
    rng = random.Random(seed)
    return ['', ' '] + [line(rng, kinds) for _ in range(count - 2)]


# ---- Files ------------------------------------------------------------------------------------

def visible(text):
    """JSON in which what cannot be seen is escaped."""
    return ''.join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def json_row(row):
    return visible(json.dumps(row, ensure_ascii=False, separators=(',', ':')))
