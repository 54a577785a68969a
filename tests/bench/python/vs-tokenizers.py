#!/usr/bin/env python3
"""vs-tokenizers.py --bin BUILD [--corpus FOLDER...] - encoding speed of FT and of `tokenizers`.

Trains tokenizers of published forms and sizes on source files and documentation, 32,000 tokens each by
default, and encodes other files with both programs on one thread, in turns: tests/bench/tokenizer, and
encode_batch_fast() of `tokenizers`, which gets a list of lines because that is faster than one text.
Both numbers are the best of the rounds, in MB of text a second of processor time.

Needs tokenizers 0.23.  Exit status 1: ids differ.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ['RAYON_NUM_THREADS'] = '1'
os.environ['TOKENIZERS_PARALLELISM'] = 'false'

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def read_corpus(folders, limit):
    text, size = [], 0
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, '**', '*.*'), recursive=True)):
            if not re.search(r'\.(py|txt|md|rst|h|c)$', path) or size > limit:
                continue
            with open(path, encoding='utf-8', errors='ignore') as file:
                text.append(file.read().replace('\0', ''))
            size += len(text[-1])
    return text


def word_piece(size):
    t = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return t, trainers.WordPieceTrainer(vocab_size=size, special_tokens=['[UNK]'], show_progress=False)


def byte_level(size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), 'isolated'),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return t, trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def byte_fallback(size):
    """Llama 2: a line is one word; trained on words, as SentencePiece does."""
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token='<unk>'))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme='always', split=True)
    tokens = ['<unk>'] + ['<0x%02X>' % b for b in range(256)]
    return t, trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, show_progress=False)


def unigram(size):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(' {2,}'), ' ')])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    return t, trainers.UnigramTrainer(vocab_size=size, special_tokens=['<unk>'], unk_token='<unk>',
                                      show_progress=False)


KINDS = [('WordPiece (BERT)', word_piece), ('byte-level BPE (Llama 3)', byte_level),
         ('BPE with byte fallback (Llama 2)', byte_fallback), ('Unigram (XLM-R)', unigram)]


def training_files(files, make):
    """All that are not held out; for Unigram, whose trainer is slow, about 3 MB of them."""
    training = [f for i, f in enumerate(files) if i % 8]
    return training[::8] if make is unigram else training


def finish(name, tokenizer):
    """What a published tokenizer.json has where training needed something else."""
    file = json.loads(tokenizer.to_str())
    if 'Llama 2' in name:
        file['pre_tokenizer'] = None
        file['normalizer'] = {'type': 'Sequence', 'normalizers': [
            {'type': 'Prepend', 'prepend': '\u2581'},
            {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\u2581'}]}
        file['added_tokens'] = file['added_tokens'][:1]
    return json.dumps(file)


def fastest(function, rounds):
    best = float('inf')
    for _ in range(rounds):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def ours(options, path, text_path):
    out = subprocess.run([os.path.join(options.bin, 'tests/bench/tokenizer'), path, text_path, '-r', '3'],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    return float(re.search(r'^encode \S+ ([^,]+)', out, re.M).group(1))


def check_ids(options, tokenizer, path, text):
    """The ids of 2,000 lines."""
    lines = [line for line in text.split('\n') if line][:2000]
    out = subprocess.run([os.path.join(options.bin, 'ft-tokenize'), '-i', path], stdout=subprocess.PIPE,
                         input=('\n'.join(lines) + '\n').encode(), check=True).stdout.decode()
    found = [json.loads(line) for line in out.splitlines()]
    return found == [e.ids for e in tokenizer.encode_batch(lines)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', default='.')
    parser.add_argument('--corpus', nargs='*', default=[sysconfig.get_path('stdlib')])
    parser.add_argument('--size', type=int, default=32000)
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    files = read_corpus(options.corpus, 24 << 20)
    held_out = '\n'.join(files[::8])[:4 << 20]
    print('| tokenizer | tokens | FT, MB/s | tokenizers, MB/s | FT is faster by |\n|---|---|---|---|---|')
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        text_path, path = os.path.join(folder, 'text'), os.path.join(folder, 'tokenizer.json')
        with open(text_path, 'w') as out:
            out.write(held_out)
        for name, make in KINDS:
            tokenizer, trainer = make(options.size)
            tokenizer.train_from_iterator(training_files(files, make), trainer)
            with open(path, 'w') as out:
                out.write(finish(name, tokenizer))
            tokenizer = Tokenizer.from_file(path)
            equal = check_ids(options, tokenizer, path, held_out) and equal
            lines, megabytes = held_out.split('\n'), len(held_out.encode()) / 1e6
            speed, theirs = 0, 0
            for _ in range(options.rounds):
                speed = max(speed, ours(options, path, text_path))
                theirs = max(theirs, megabytes / fastest(lambda: tokenizer.encode_batch_fast(lines), 1))
            print('| %s | %d | %.1f | %.1f | %.1f |' % (name, tokenizer.get_vocab_size(), speed, theirs,
                                                     speed / theirs), flush=True)
    sys.exit(0 if equal else 1)


if __name__ == '__main__':
    main()
