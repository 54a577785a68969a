#!/usr/bin/env python3
#
# make-tokenizer-sources.py - tokenizers in every published form but tokenizer.json, and what the
# published libraries make of 1,000 varied lines with them.
#
#     python3 -m venv /tmp/venv
#     /tmp/venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3 protobuf
#     make tests/programs/tokenizer-json
#     /tmp/venv/bin/python tests/golden/make-tokenizer-sources.py
#
# trains small tokenizers into tokenizer-sources/, where they are not there yet, has ft-convert's
# code turn each into a tokenizer.json, loads that in the `tokenizers` library, compares its ids with
# those of `sentencepiece` where that library has trained the tokenizer, and writes beside itself
#
#     tokenizer-sources.jsonl   per class [name, {file name in a checkpoint: file in
#                               tokenizer-sources/, or its text}, {"tokenizer": SHA-256 of the JSON,
#                               "target": the same, "languages": the JSON}, [SHA-256 of the tokens of
#                               50 lines, ...], [the same of 50 pairs, ...]]
#
# The lines are those of bpe-lines.jsonl; the pairs are the first 200 lines, each with the one 200 lines
# later. A token is "id:type id:start-end", its range in bytes; tokens are separated by blanks, and each
# line or pair ends with a line feed. Training breaks ties at random.
#
# The files in the repository come from tokenizers 0.23.3, sentencepiece 0.2.3 and Python 3.11.
#
# SPDX-License-Identifier: Apache-2.0

import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from varied_lines import KINDS, json_row, lines

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, 'tokenizer-sources')
PROGRAM = os.path.join(os.environ.get('FT_BUILDDIR', os.path.join(HERE, '..', '..')),
                       'tests', 'programs', 'tokenizer-json')
BLOCK, N_PAIRS = 50, 200
SPACE = '\u2581'

WORDS = [(8, KINDS[1][1]), (1, KINDS[0][1]), (1, KINDS[2][1])]

# ---- Training -----------------------------------------------------------------------------------

# A charsmap in the manner of nmt_nfkc, but small: white space, control characters, full width,
# ligatures, a composition.
RULES = (
    [(c, ' ') for c in (9, 10, 13, 0x0b, 0x0c, 0x85, 0xa0, 0x2003, 0x2028, 0x3000)]
    + [(c, '') for c in (1, 2, 0x7f, 0x200b, 0xfeff)]
    + [(c, chr(c - 0xfee0)) for c in range(0xff01, 0xff5f)]
    + [(0xfb01, 'fi'), (0xfb03, 'ffi'), (0xb2, '2'), (0xbd, '1\u20442'), (0x2126, '\u03a9')])
PAIRS = [('e\u0301', '\xe9'), ('o\u0308', '\xf6'), ('a\u0303', '\xe3')]


def rules_file(folder):
    path = os.path.join(folder, 'rules.tsv')
    with open(path, 'w') as out:
        for source, target in [(chr(c), t) for c, t in RULES] + PAIRS:
            hexes = [' '.join('%X' % ord(c) for c in side) for side in (source, target)]
            out.write('\t'.join(hexes) + '\n')
    return path


def train_pieces(name, size, text, **settings):
    path = os.path.join(SOURCES, name)
    if os.path.exists(path):
        return
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        if settings.pop('rules', False):
            settings['normalization_rule_tsv'] = rules_file(folder)
        else:
            settings['normalization_rule_name'] = 'identity'
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=model, vocab_size=size, num_threads=1,
            minloglevel=2, hard_vocab_limit=False, max_sentence_length=100000, **settings)
    with open(path, 'wb') as out:
        out.write(model.getvalue())


def write_once(name, text):
    path = os.path.join(SOURCES, name)
    if not os.path.exists(path):
        with open(path, 'wb') as out:
            out.write(text.encode())


def train_word_pieces(name, size, text, lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    tokenizer.train_from_iterator(text, trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=special, limit_alphabet=size // 3, show_progress=False))
    vocab = tokenizer.get_vocab()
    write_once(name, '\n'.join(sorted(vocab, key=vocab.get)) + '\n')


def train_bytes(size, text):
    if os.path.exists(os.path.join(SOURCES, 'merges.txt')):
        return
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>', '<|endoftext|>']
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tokenizer.to_str())['model']
    write_once('vocab.json', json.dumps(model['vocab'], ensure_ascii=False))
    write_once('merges.txt', '\n'.join(['#version: 0.2'] + [' '.join(m) for m in model['merges']])
               + '\n')


def train_suffixes(size, text):
    """Words of BERT, whose last tokens end in </w>."""
    if os.path.exists(os.path.join(SOURCES, 'suffix-merges.txt')):
        return
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', end_of_word_suffix='</w>'))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(
        vocab_size=size, special_tokens=['<s>', '<pad>', '</s>', '<unk>', '<mask>'], show_progress=False,
        limit_alphabet=size // 3, end_of_word_suffix='</w>'))
    model = json.loads(tokenizer.to_str())['model']
    write_once('suffix-vocab.json', json.dumps(model['vocab'], ensure_ascii=False))
    write_once('suffix-merges.txt', '\n'.join(['#version: 0.2'] + [' '.join(m) for m in model['merges']])
               + '\n')


def pieces_of(name):
    processor = sentencepiece.SentencePieceProcessor(model_file=os.path.join(SOURCES, name))
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())], processor


def make_table(name, first, models_of_pieces, last, drop):
    """An id table that lacks every `drop`th piece."""
    tokens = list(first)
    for model in models_of_pieces:
        pieces, _ = pieces_of(model)
        tokens += [p for i, p in enumerate(pieces) if p not in tokens and (i + 1) % drop]
    tokens += last
    write_once(name, json.dumps({t: i for i, t in enumerate(tokens)}, ensure_ascii=False))


def train_all():
    os.makedirs(SOURCES, exist_ok=True)
    # Mostly words, so that the pieces are not all single characters.
    text = [t for t in lines(41, 500) + lines(42, 3500, WORDS) if '\0' not in t]
    random.Random(43).shuffle(text)
    train_word_pieces('uncased.txt', 900, text, True)
    train_word_pieces('cased.txt', 900, text, False)
    train_bytes(900, text)
    train_suffixes(900, text)
    train_pieces('llama.model', 900, text, model_type='bpe', byte_fallback=True,
                 character_coverage=.98, remove_extra_whitespaces=False, split_digits=True,
                 allow_whitespace_only_pieces=True)
    train_pieces('t5.model', 500, text, model_type='unigram', character_coverage=.98, rules=True,
                 pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    train_pieces('unigram.model', 700, text, model_type='unigram', character_coverage=.98,
                 rules=True)
    train_pieces('bytes.model', 700, text, model_type='unigram', character_coverage=.98,
                 byte_fallback=True)
    train_pieces('bpe.model', 700, text, model_type='bpe', character_coverage=.98, rules=True)
    train_pieces('source.spm', 500, text[:1500], model_type='unigram', character_coverage=.98,
                 rules=True)
    train_pieces('target.spm', 500, text[1500:], model_type='unigram', character_coverage=.98,
                 rules=True)
    make_table('marian.json', ['</s>', '<unk>', '>>fra<<', '>>deu<<'], ['source.spm', 'target.spm'],
               ['<pad>'], 17)
    make_table('m2m100.json', ['<s>', '<pad>', '</s>', '<unk>'], ['bpe.model'], [], 19)


# ---- Cases --------------------------------------------------------------------------------------

def crlf(name):
    with open(os.path.join(SOURCES, name), newline='') as text:
        return '\ufeff' + text.read().replace('\n', '\r\n')


def config(**settings):
    return {'tokenizer_config.json': json.dumps(settings, ensure_ascii=False)}


def described(*tokens):
    flags = {'lstrip': False, 'rstrip': False, 'single_word': False}
    return {str(i): dict(flags, content=t, normalized=not special, special=special)
            for i, t, special in tokens}


def fairseq_id(i):
    return {0: 3, 1: 0, 2: 2}.get(i, i + 1)


def table_ids(table):
    with open(os.path.join(SOURCES, table)) as text:
        ids = json.load(text)
    return ids


# name, files, (model of SentencePiece, its piece and position -> id, prefix, suffix) or None
def cases():
    count = 903  # ids of vocab.json
    with open(os.path.join(SOURCES, 'vocab.json')) as text:
        count = len(json.load(text))
    fairseq = ('unigram.model', lambda p, i: fairseq_id(i))
    n_unigram = len(pieces_of('unigram.model')[0])
    n_bpe = len(pieces_of('bpe.model')[0])
    marian, m2m100 = table_ids('marian.json'), table_ids('m2m100.json')
    bytes_files = {'vocab.json': 'vocab.json', 'merges.txt': 'merges.txt'}
    marian_files = {'source.spm': 'source.spm', 'target.spm': 'target.spm',
                    'vocab.json': 'marian.json'}
    return [
        ('bert', {'vocab.txt': 'uncased.txt', **config(tokenizer_class='BertTokenizer')}, None),
        ('bert-cased', {'vocab.txt': crlf('cased.txt'), **config(
            tokenizer_class='BertTokenizerFast', do_lower_case=False, strip_accents=True,
            tokenize_chinese_chars=False, model_max_length=10**30)}, None),
        ('gpt2', {**bytes_files, **config(tokenizer_class='GPT2Tokenizer')}, None),
        ('roberta', {'vocab.json': 'vocab.json', 'merges.txt': crlf('merges.txt'),
                     **config(tokenizer_class='RobertaTokenizer', add_prefix_space=True)}, None),
        ('qwen2', {**bytes_files, **config(
            tokenizer_class='Qwen2Tokenizer', bos_token=None, eos_token='<|im_end|>',
            added_tokens_decoder=described((5, '<|endoftext|>', True),
                                           (count, '<|im_start|>', True),
                                           (count + 1, '<|im_end|>', True),
                                           (count + 2, '<tool>', False)))}, None),
        ('herbert', {'vocab.json': 'suffix-vocab.json', 'merges.txt': 'suffix-merges.txt',
                     **config(tokenizer_class='HerbertTokenizerFast')}, None),
        ('llama', {'tokenizer.model': 'llama.model', **config(tokenizer_class='LlamaTokenizer')},
         ('llama.model', lambda p, i: i, [1], [])),
        ('llama-new', {'tokenizer.model': 'llama.model', **config(
            tokenizer_class='LlamaTokenizer', legacy=False, add_eos_token=True)},
         None),  # without its "legacy" behaviour, a space in front of the text takes none before it
        ('llama-unigram', {'tokenizer.model': 'bytes.model', **config(
            tokenizer_class='LlamaTokenizer')}, ('bytes.model', lambda p, i: i, [1], [])),
        ('t5', {'spiece.model': 't5.model', **config(tokenizer_class='T5Tokenizer', extra_ids=10)},
         ('t5.model', lambda p, i: i, [], [1])),
        ('xlm-roberta', {'sentencepiece.bpe.model': 'unigram.model',
                         **config(tokenizer_class='XLMRobertaTokenizer')}, (*fairseq, [0], [2])),
        ('mbart', {'sentencepiece.bpe.model': 'unigram.model', **config(
            tokenizer_class='MBartTokenizer', src_lang='de_DE')},
         (*fairseq, [], [2, n_unigram + 1 + 2])),
        ('mbart50', {'sentencepiece.bpe.model': 'unigram.model', **config(
            tokenizer_class='MBart50Tokenizer', src_lang='en_XX', tgt_lang='ro_RO')},
         (*fairseq, [n_unigram + 1 + 3], [2])),
        ('nllb', {'sentencepiece.bpe.model': 'bpe.model', **config(
            tokenizer_class='NllbTokenizer')},
         ('bpe.model', lambda p, i: fairseq_id(i), [n_bpe + 1 + 46], [2])),
        ('m2m100', {'sentencepiece.bpe.model': 'bpe.model', 'vocab.json': 'm2m100.json', **config(
            tokenizer_class='M2M100Tokenizer', src_lang='de')},
         ('bpe.model', lambda p, i: m2m100.get(p, m2m100['<unk>']), [len(m2m100) + 16], [2])),
        ('marian', {**marian_files, **config(tokenizer_class='MarianTokenizer', source_lang='eng',
                                             target_lang='mul')},
         ('source.spm', lambda p, i: marian.get(p, marian['<unk>']), [], [0])),
    ]


# ---- Running ------------------------------------------------------------------------------------

def fill(folder, files):
    for name, content in files.items():
        to = os.path.join(folder, name)
        if os.path.exists(os.path.join(SOURCES, content)) and '\n' not in content:
            shutil.copy(os.path.join(SOURCES, content), to)
        else:
            with open(to, 'wb') as out:
                out.write(content.encode())


def converted(folder, what):
    run = subprocess.run([PROGRAM, folder, what], stdout=subprocess.PIPE, check=True)
    return run.stdout


class Literal(float):
    """A number that is written as it was read: the library rounds numbers by their digits."""

    def __new__(cls, text):
        number = super().__new__(cls, text)
        number.text = text
        return number


def dump(file):
    """JSON with the literals; json.dumps() would write other digits."""
    def mark(value):
        if isinstance(value, Literal):
            return '\0%s\0' % value.text
        if isinstance(value, dict):
            return {key: mark(v) for key, v in value.items()}
        return [mark(v) for v in value] if isinstance(value, list) else value
    return json.dumps(mark(file)).replace('"\\u0000', '').replace('\\u0000"', '')


def load(text):
    """The tokenizer of the library, and a function of ids and tokens that gives those of the file.

    The library knows no tokens that are only decoded: those get texts that no line has.
    """
    file = json.loads(text, parse_float=Literal)
    model = file['model']
    limit = model.pop('unknown_from', None)
    decoded = {}
    unknown = model.get('unk_id', None)
    if model['type'] == 'Unigram':
        lowest = min(s for _, s in model['vocab'] if s is not None)
        added = {t['content'] for t in file['added_tokens']}
        for i, (piece, score) in enumerate(model['vocab']):
            if score is None and piece[:3] != '<0x':
                decoded[piece] = i
                piece = piece if piece in added else '\U000f0000\U000f0000%d' % i
            model['vocab'][i] = [piece, lowest - 1000 if score is None else score]
    elif limit is not None:
        unknown = model['vocab'][model['unk_token']]

    def outer(i, token):
        if limit is not None and i >= limit:
            return unknown
        return decoded.get(token, unknown) if i == unknown else i
    return Tokenizer.from_str(dump(file)), outer


def sentencepiece_ids(reference, text):
    model, id_of, prefix, suffix = reference
    processor = PROCESSORS.setdefault(model, pieces_of(model)[1])
    pieces, ids = processor.encode(text, out_type=str), processor.encode(text, out_type=int)
    return prefix + [id_of(piece, i) for piece, i in zip(pieces, ids)] + suffix


PROCESSORS = {}


def compare(name, text, ids, reference, special):
    """Texts that spell special tokens or contain U+2581 have other ids in SentencePiece alone."""
    if reference is None or SPACE in text or any(s in text for s in special):
        return 0
    expected = sentencepiece_ids(reference, text)
    if ids == expected:
        return 0
    # Sums of the same scores in another order: SentencePiece adds float32, the other float64.
    if sorted(ids) != sorted(expected):
        sys.exit('%s: %r: %s, SentencePiece: %s' % (name, text, ids, expected))
    return 1


def tokens_of(encoding, outer, texts):
    """The ids, and the text of the digest."""
    places = []
    for text in texts:
        starts = [0]
        for c in text:
            starts.append(starts[-1] + len(c.encode()))
        places.append(starts)
    ids, tokens = [], []
    for i, token, kind, (start, end), sequence in zip(
            encoding.ids, encoding.tokens, encoding.type_ids, encoding.offsets,
            encoding.sequence_ids):
        at = places[sequence or 0]
        ids.append(outer(i, token))
        tokens.append('%d:%d:%d-%d' % (ids[-1], kind, at[start], at[end]))
    return ids, ' '.join(tokens) + '\n'


def digest_blocks(rows):
    blocks = [''.join(rows[i:i + BLOCK]) for i in range(0, len(rows), BLOCK)]
    return [hashlib.sha256(block.encode()).hexdigest()[:32] for block in blocks]


def run_case(name, files, reference, texts):
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, files)
        text = converted(folder, 'tokenizer')
        target = converted(folder, 'target')
        languages = converted(folder, 'languages')
    tokenizer, outer = load(text)
    special = [t['content'] for t in json.loads(text)['added_tokens']]
    rows, different = [], 0
    for line in texts:
        ids, row = tokens_of(tokenizer.encode(line), outer, [line])
        different += compare(name, line, ids, reference, special)
        rows.append(row)
    pairs = [tokens_of(tokenizer.encode(a, b), outer, [a, b])[1]
             for a, b in zip(texts[:N_PAIRS], texts[N_PAIRS:])]
    print('%s: %d of %d lines differ from SentencePiece' % (name, different, len(texts)),
          file=sys.stderr)
    results = {'tokenizer': hashlib.sha256(text).hexdigest()}
    if target:
        results['target'] = hashlib.sha256(target).hexdigest()
    if languages:
        results['languages'] = json.loads(languages)
    return [name, files, results, digest_blocks(rows), digest_blocks(pairs)]


def main():
    train_all()
    with open(os.path.join(HERE, 'bpe-lines.jsonl'), encoding='utf-8', newline='\n') as rows:
        texts = [json.loads(row)[0] for row in rows]
    with open(os.path.join(HERE, 'tokenizer-sources.jsonl'), 'w', encoding='utf-8') as out:
        for name, files, reference in cases():
            out.write(json_row(run_case(name, files, reference, texts)) + '\n')


if __name__ == '__main__':
    main()
