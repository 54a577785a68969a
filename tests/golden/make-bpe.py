#!/usr/bin/env python3
#
# make-bpe.py - ask the `tokenizers` library what its BPE tokenizers make of 1,000 varied lines, of
# every setting that a tokenizer.json may have, and of every code point.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3 numpy
#     /tmp/venv/bin/python tests/golden/make-bpe.py [FOLDER OF python-llama]
#
# writes, beside itself:
#
#     bpe-lines.jsonl        ["text", digest with bpe-llama2.json, -llama3, -qwen2, python-llama]
#     bpe-settings.jsonl     ["llama2" or so, {sections of the file that differ}, [["text" or null,
#                            ids, decoded with special tokens, decoded without], ...]]; ids without
#                            a text are random ones
#     bpe-characters.txt     per 4,096 code points digests of regular expressions, of NFC, of digits
#     bpe-calibration.txt    per row of python-llama's calibration data a digest of its text and of
#                            the ids of that text
#
# and, where they are not there yet, bpe-llama2.json, bpe-llama3.json and bpe-qwen2.json: small
# tokenizers in the manner of those models.  Training breaks ties at random.
#
# The digest of a text is the SHA-256 of its ids with blanks between, a line feed, what the ids
# decode to, a line feed, and the same without special tokens.
#
# The files in the repository come from tokenizers 0.23.3 and Python 3.11.
#
# SPDX-License-Identifier: Apache-2.0

import glob
import hashlib
import json
import os
import random
import struct
import sys

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from varied_lines import KINDS, SCRIPTS, json_row, lines

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ['llama2', 'llama3', 'qwen2']

LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_WORDS = LLAMA3_WORDS.replace('{1,3}', '')
CASED_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# ---- Lines ------------------------------------------------------------------------------------

SPECIAL = [
    '<s>', '</s>', '<unk>', '<s', '<s><s>', ' <s> ', '<|begin_of_text|>', '<|eot_id|>', '<|eot_id',
    '<|start_header_id|>user<|end_header_id|>\n\n', '<|im_start|>', '<|im_end|>\n', '<tool>',
    ' <tool> ', '<left>', '  <left>x', 'x<right>  ', '<single>', 'x<single>', '<e\u0301>', '<\xe9>',
    'un deux', 'undeux', '<0xE2>', '\u2581', '\u2581\u2581x', '\u0120', '\u0120the',
]
ENDINGS = [
    "I'm", "I'M", "he'S", "she\u2019s", "we'LL", "'\u017fo", "don't've", "''s", "x'd", " 're",
    "\u212a'll", "'LLama",
]
SPACE_RUNS = [' ' * 5, ' ' * 8, ' ' * 33, '\n' * 3, '\r\n\r\n', '\t\t', ' \n ', '  \n\n   ', '\u180e',
              '\u3000 ', '\u200b', '\n    ', '\n\t\treturn x;\n', '\u2028\u2029', '\x85']
NEW_CHARACTERS = [chr(c) for c in (
    0x1c89, 0xa7cb, 0x105c0, 0x10d40, 0x11bf0, 0x16ff4, 0x1cc00, 0x1fae9, 0x2ebf0, 0x31350, 0x1e4f0,
    0x16ac0, 0x11938, 0x11935, 0x11930, 0x1133e)]
MORE = [
    (2, lambda r: r.choice(SPECIAL)),
    (2, lambda r: r.choice(ENDINGS)),
    (3, lambda r: r.choice(SPACE_RUNS)),
    (.5, lambda r: r.choice(NEW_CHARACTERS)),
    (.5, lambda r: str(r.randrange(10 ** r.randrange(1, 12)))),
    (.2, lambda r: ' ' * r.randrange(40, 200)),
]


def varied(seed, count):
    return lines(seed, count, KINDS + MORE)


# ---- Tokenizers -------------------------------------------------------------------------------

def path_of(name):
    return os.path.join(HERE, 'bpe-%s.json' % name)


def training_text():
    text = lines(1, 1500) + SCRIPTS * 2
    for path in sorted(glob.glob('/usr/share/common-licenses/*')):
        with open(path, encoding='utf-8', errors='ignore') as file:
            text += [] if os.path.islink(path) else file.readlines()
    return text


def split(pattern, behavior='isolated', invert=False):
    return pre_tokenizers.Split(pattern if ' ' == pattern else Regex(pattern), behavior, invert)


def byte_level(words):
    return pre_tokenizers.Sequence(
        [split(words), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(tokenizer, size, special, alphabet):
    tokenizer.train_from_iterator(training_text(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, limit_alphabet=500,
        show_progress=False))


def make_llama2():
    """Characters, and bytes where they are unknown; blanks are U+2581."""
    special = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % byte for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend('\u2581'), normalizers.Replace(' ', '\u2581')])
    tokenizer.pre_tokenizer = pre_tokenizers.Split('\u2581', 'merged_with_next')
    train(tokenizer, 1500, special, [])
    tokenizer.pre_tokenizer = None
    file = json.loads(tokenizer.to_str())
    file['added_tokens'] = file['added_tokens'][:3]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_tokens([
        AddedToken('<tool>', normalized=False), AddedToken('un deux', normalized=True),
        AddedToken('<left>', lstrip=True, normalized=False),
        AddedToken('<right>', rstrip=True, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single='<s> $A', pair='<s> $A <s> $B:1', special_tokens=[('<s>', 1)])
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace('\u2581', ' '), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(' ', 1, 0)])
    return tokenizer


def make_llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = byte_level(LLAMA3_WORDS)
    train(tokenizer, 1400, [], pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(
        ['<|begin_of_text|>', '<|end_of_text|>', '<|start_header_id|>', '<|end_header_id|>',
         '<|eot_id|>'])
    tokenizer.add_tokens([
        AddedToken('<tool>', normalized=False), AddedToken('<single>', single_word=True),
        AddedToken('<left>', lstrip=True), AddedToken('<right>', rstrip=True)])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single='<|begin_of_text|> $A', pair='<|begin_of_text|> $A <|begin_of_text|> $B:1',
            special_tokens=[('<|begin_of_text|>', tokenizer.token_to_id('<|begin_of_text|>'))])])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def make_qwen2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = byte_level(QWEN2_WORDS)
    train(tokenizer, 1400, [], pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(['<|endoftext|>', '<|im_start|>', '<|im_end|>'])
    tokenizer.add_tokens([AddedToken('<e\u0301>', normalized=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def write_tokenizer(name, tokenizer):
    """One line; merges of Llama 3 as strings with a blank between, as older files have them."""
    file = json.loads(tokenizer.to_str())
    if name == 'llama3':
        file['model']['merges'] = [' '.join(pair) for pair in file['model']['merges']]
    write('bpe-%s.json' % name, [json.dumps(file, ensure_ascii=False, separators=(',', ':'))])


def load(file):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def read(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


# ---- Settings ---------------------------------------------------------------------------------

def section(part):
    return json.loads(part.__getstate__())


def settings():
    """The name of a tokenizer, and the sections that differ from its file."""
    def model(**changes):
        return {'model': changes}

    p, d, n = pre_tokenizers, decoders, normalizers
    yield 'llama2', {}
    yield 'llama3', {}
    yield 'qwen2', {}
    for cut in (False, True):
        for scheme in ('always', 'first', 'never'):
            parts = p.Metaspace('\u2581', scheme, cut), d.Metaspace('\u2581', scheme, cut)
            yield 'llama2', {'normalizer': None, 'pre_tokenizer': section(parts[0]),
                             'decoder': section(parts[1])}
    yield 'llama2', {'normalizer': None, 'pre_tokenizer': {
        'type': 'Metaspace', 'replacement': '\u2581', 'add_prefix_space': True}}
    yield 'llama2', model(byte_fallback=False)
    yield 'llama2', model(byte_fallback=False, fuse_unk=False)
    yield 'llama2', model(byte_fallback=False, unk_token=None)
    yield 'llama2', {'decoder': None}
    yield 'llama2', {'decoder': section(d.ByteFallback())}
    yield 'llama2', {'decoder': section(d.Sequence([d.Replace('\u2581', ' '), d.ByteFallback(),
                                                    d.Strip(' ', 2, 0)]))}
    yield 'llama2', {'decoder': section(d.Sequence([d.Replace('\u2581', ' '), d.Fuse(),
                                                    d.Strip(' ', 3, 0)]))}
    yield 'llama2', {'decoder': section(d.Sequence([d.Replace('\u2581', ''), d.Replace('t', 'TT')]))}
    yield 'llama2', {'decoder': section(d.WordPiece('e', True))}
    yield 'llama2', {'decoder': section(d.WordPiece('\u2581', False))}
    yield 'llama2', {'normalizer': section(n.Sequence([n.NFC(), n.Replace('  ', ' '),
                                                       n.Replace('e', '')]))}
    for prefix in (False, True):
        for words in (False, True):
            yield 'llama3', {'pre_tokenizer': section(p.ByteLevel(prefix, use_regex=words))}
    yield 'llama3', model(ignore_merges=False)
    yield 'llama3', {'pre_tokenizer': section(byte_level(CASED_WORDS))}
    yield 'llama3', {'post_processor': None}
    byte = p.ByteLevel(add_prefix_space=False, use_regex=False)
    for behavior in ('isolated', 'removed', 'merged_with_previous', 'merged_with_next',
                     'contiguous'):
        for invert in (False, True):
            for pattern in (' ', r'\p{Lu}|x?'):
                yield 'llama3', {'pre_tokenizer': section(
                    p.Sequence([split(pattern, behavior, invert), byte]))}
    yield 'llama3', {'pre_tokenizer': section(p.Sequence(
        [p.Digits(True), split(r'^[^\S\n]+|[\S]+$|(?<=\p{L})\p{P}'), byte]))}
    yield 'llama3', {'pre_tokenizer': section(p.Sequence([p.Digits(False), p.ByteLevel(True)]))}
    yield 'llama3', {'pre_tokenizer': section(p.BertPreTokenizer())}


def with_settings(name, changes):
    file = read(path_of(name))
    for key, value in changes.items():
        if key == 'model':
            file['model'].update(value)
        else:
            file[key] = value
    return load(file)


def random_ids(rng, tokenizer):
    """Any ids, one too high among them, and runs of bytes, valid and not, where these are tokens."""
    ids = []
    for _ in range(12):
        byte = [tokenizer.token_to_id('<0x%02X>' % b) for b in rng.choice(
            ['\u20ac', '\u00e9', '\U0001f600\u20ac', ' x']).encode()[:rng.randrange(1, 8)]]
        if None not in byte and rng.random() < .5:
            ids += byte
        ids += [rng.randrange(tokenizer.get_vocab_size() + 1) for _ in range(rng.randrange(4))]
    return ids


def setting_rows():
    for seed, (name, changes) in enumerate(settings()):
        tokenizer = with_settings(name, changes)
        texts = varied(1000 + seed, 9)[1:] + ['', ' a', 'Hello 2024!', '  \u20ac\u00e9\U0001f600 ']
        rows = []
        for text in texts:
            ids = tokenizer.encode(text).ids
            rows.append([text, ids, tokenizer.decode(ids, skip_special_tokens=False),
                         tokenizer.decode(ids)])
        rng = random.Random(seed)
        for ids in [random_ids(rng, tokenizer) for _ in range(6)]:
            rows.append([None, ids, tokenizer.decode(ids, skip_special_tokens=False),
                         tokenizer.decode(ids)])
        yield json_row([name, changes, rows])


# ---- Files ------------------------------------------------------------------------------------

def write(name, rows):
    path = os.path.join(HERE, name)
    with open(path, 'w', encoding='utf-8', newline='\n') as file:
        file.writelines(row + '\n' for row in rows)
    print(name, os.path.getsize(path), 'bytes')


def digest(*texts):
    return hashlib.sha256('\n'.join(texts).encode()).hexdigest()[:16]


def digest_of_line(tokenizer, text):
    ids = tokenizer.encode(text).ids
    return digest(' '.join(map(str, ids)), tokenizer.decode(ids, skip_special_tokens=False),
                  tokenizer.decode(ids))


PATTERNS = [r'\s', r'[^\S]', r'\d'] + [r'\p{%s}' % name for name in (
    'L Lu Ll Lt Lm Lo M N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z').split()]


def character_digests():
    """Of 4,096 code points: those that each pattern matches; the NFC of each alone, of each after a
    letter and before marks, and of its decomposition; and the numbers among them."""
    nfc, nfd, digits = normalizers.NFC(), normalizers.NFD(), pre_tokenizers.Digits(False)
    matched = [split(pattern, 'removed', True) for pattern in PATTERNS]
    for first in range(0, 0x110000, 0x1000):
        block = [chr(c) for c in range(first, first + 0x1000) if not 0xd800 <= c < 0xe000]
        text = ''.join(block)
        words = [''.join(word for word, _ in one.pre_tokenize_str(text)) for one in matched]
        normal = ''
        for c in block:
            normal += nfc.normalize_str('A' + c + '\u0327\u0301' + c) + '\n'
            normal += nfc.normalize_str(nfd.normalize_str(c)) + '\n'
        numbers = [str(len(digits.pre_tokenize_str('a' + c))) for c in block]
        yield '%06x %s %s %s' % (first, digest(*words), digest(normal), digest(''.join(numbers)))


def calibration_ids(folder):
    """The rows of input_ids, I32."""
    with open(os.path.join(folder, 'calibration.safetensors'), 'rb') as file:
        header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        data = file.read()
    about = header['input_ids']
    assert about['dtype'] == 'I32'
    rows, columns = about['shape']
    begin = about['data_offsets'][0]
    for row in range(rows):
        yield struct.unpack_from('<%di' % columns, data, begin + row * columns * 4)


def calibration_digests(tokenizer, folder):
    for ids in calibration_ids(folder):
        text = tokenizer.decode(list(ids), skip_special_tokens=False)
        yield digest(text, ' '.join(map(str, tokenizer.encode(text).ids)))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        HERE, '..', '..', '..', 'shared', 'models', 'python-llama')
    for name, make in zip(NAMES, (make_llama2, make_llama3, make_qwen2)):
        if not os.path.exists(path_of(name)):
            write_tokenizer(name, make())
    tokenizers = [load(read(path_of(name))) for name in NAMES]
    python = load(read(os.path.join(folder, 'tokenizer.json')))
    write('bpe-lines.jsonl', (
        json_row([text] + [digest_of_line(one, text) for one in tokenizers + [python]])
        for text in varied(2, 1000)))
    write('bpe-settings.jsonl', setting_rows())
    write('bpe-characters.txt', character_digests())
    write('bpe-calibration.txt', calibration_digests(python, folder))


if __name__ == '__main__':
    main()
