#!/usr/bin/env python3
#
# make-tokenizers.py - ask the `tokenizers` library what tokenizers of every published pipeline, and
# random pipelines of all components, make of texts and pairs.
#
#     python3 -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
#     /tmp/venv/bin/python tests/golden/make-tokenizers.py
#
# writes, beside itself:
#
#     tokenizer-families.jsonl    [name, tokenizer.json, [digest of 50 lines, ...], [digest of 50 pairs, ...]]
#     tokenizer-components.jsonl  [tokenizer.json, [[text, pair or null, digest], ...]]
#
# The lines are those of bpe-lines.jsonl; pair i is line i with line 999 - i.  A digest is the SHA-256 of
# the JSON lists of ids, type ids and offsets of each text, in order.  "@nmt_nfkc" stands for the charsmap
# in nmt_nfkc.txt, which is base64.
#
# The files in the repository come from tokenizers 0.23.3, sentencepiece 0.2.3 and Python 3.11.
#
# SPDX-License-Identifier: Apache-2.0

import base64
import hashlib
import io
import json
import os
import random

import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as spm_model
from tokenizers import AddedToken, Regex, Tokenizer, models, trainers
from tokenizers import normalizers as N, pre_tokenizers as P, processors as C, decoders as D

HERE = os.path.dirname(os.path.abspath(__file__))
LINES = [json.loads(line)[0] for line in open(os.path.join(HERE, 'bpe-lines.jsonl'), encoding='utf-8')]
PAIRS = [(LINES[i], LINES[999 - i]) for i in range(200)]
BLOCK = 50

# ---- What the library says ----------------------------------------------------------------------


def encoding(tokenizer, text, pair=None):
    e = tokenizer.encode(text, pair) if pair is not None else tokenizer.encode(text)
    return json.dumps([e.ids, e.type_ids, [list(offsets) for offsets in e.offsets]], separators=(', ', ': '))


def digest(texts):
    return hashlib.sha256('\n'.join(texts).encode()).hexdigest()[:16]


def blocks(tokenizer, rows):
    encoded = [encoding(tokenizer, *row) for row in rows]
    return [digest(encoded[i:i + BLOCK]) for i in range(0, len(encoded), BLOCK)]


def saved(tokenizer, charsmap):
    return tokenizer.to_str().replace(charsmap, '@nmt_nfkc')


# ---- Published pipelines -------------------------------------------------------------------------

CORPUS = [line for line in LINES if line]
BYTES = P.ByteLevel.alphabet()
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def special(*names, **flags):
    return [AddedToken(name, special=True, normalized=False, **flags) for name in names]


def template(single, pair, tokenizer, *names):
    return C.TemplateProcessing(single=single, pair=pair,
                                special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])


def bert(cased):
    t = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    t.normalizer = N.BertNormalizer(lowercase=not cased, strip_accents=False if cased else None)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.decoder = D.WordPiece()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=500, limit_alphabet=250, show_progress=False,
        special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']))
    t.post_processor = template('[CLS] $A [SEP]', '[CLS] $A [SEP] $B:1 [SEP]:1', t, '[CLS]', '[SEP]')
    return t


def byte_level(specials, split=None, normalizer=None, prefix=False, size=600):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=prefix) if split is None else P.Sequence(
        [P.Split(Regex(split), 'isolated'), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = D.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, initial_alphabet=BYTES, show_progress=False))
    return t


def gpt2():
    t = byte_level(['<|endoftext|>'])
    t.post_processor = C.ByteLevel(trim_offsets=False)
    return t


def roberta():
    t = byte_level(['<s>', '<pad>', '</s>', '<unk>'], prefix=False)
    t.add_special_tokens([AddedToken('<mask>', lstrip=True, normalized=False)])
    t.post_processor = C.RobertaProcessing(('</s>', 2), ('<s>', 0), True, False)
    return t


def llama3():
    t = byte_level(['<|begin_of_text|>', '<|end_of_text|>', '<|eot_id|>'], LLAMA3)
    t.post_processor = C.Sequence([C.ByteLevel(trim_offsets=False), template(
        '<|begin_of_text|> $A', '<|begin_of_text|> $A <|begin_of_text|> $B:1', t, '<|begin_of_text|>')])
    return t


def qwen2():
    t = byte_level(['<|endoftext|>', '<|im_start|>', '<|im_end|>'], LLAMA3.replace('{1,3}', ''), N.NFC())
    t.post_processor = C.ByteLevel(trim_offsets=False)
    return t


def clip():
    t = Tokenizer(models.BPE(end_of_word_suffix='</w>', unk_token='<|endoftext|>'))
    t.normalizer = N.Sequence([N.NFC(), N.Replace(Regex(r'\s+'), ' '), N.Lowercase()])
    t.pre_tokenizer = P.Sequence([P.Split(Regex(
        r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), 'removed', invert=True),
        P.ByteLevel(add_prefix_space=False)])
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=800, end_of_word_suffix='</w>', initial_alphabet=BYTES, show_progress=False,
        special_tokens=['<|startoftext|>', '<|endoftext|>']))
    t.post_processor = C.RobertaProcessing(('<|endoftext|>', 1), ('<|startoftext|>', 0), False, False)
    return t


def pieces(size, kind, **more):
    """The pieces of a SentencePiece model, and its charsmap."""
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, vocab_size=size,
                                   model_type=kind, character_coverage=0.98, minloglevel=2,
                                   hard_vocab_limit=False, **more)
    model = spm_model.ModelProto()
    model.ParseFromString(out.getvalue())
    return ([(p.piece, p.score) for p in model.pieces],
            base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode())


def unigram(vocabulary, unknown, charsmap, scheme='always', squeeze=True, more=()):
    t = Tokenizer(models.Unigram(vocabulary, unk_id=unknown))
    steps = [N.Precompiled(base64.b64decode(charsmap))] + list(more)
    if squeeze:
        steps.append(N.Replace(Regex(' {2,}'), ' '))
    t.normalizer = N.Sequence(steps)
    t.pre_tokenizer = P.Metaspace(replacement='\u2581', prepend_scheme=scheme)
    t.decoder = D.Metaspace(replacement='\u2581', prepend_scheme=scheme)
    return t


def xlm_roberta(vocabulary, charsmap):
    v = [('<s>', 0.0), ('<pad>', 0.0), ('</s>', 0.0), ('<unk>', 0.0)] + vocabulary[3:] + [('<mask>', 0.0)]
    t = unigram(v, 3, charsmap)
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme='always')])
    t.add_special_tokens(special('<s>', '<pad>', '</s>', '<unk>') + special('<mask>', lstrip=True))
    t.post_processor = template('<s> $A </s>', '<s> $A </s> </s> $B </s>', t, '<s>', '</s>')
    return t


def mbart(vocabulary, charsmap):
    v = [('<s>', 0.0), ('<pad>', 0.0), ('</s>', 0.0), ('<unk>', 0.0)] + vocabulary[3:]
    v += [('en_XX', 0.0), ('ro_RO', 0.0), ('<mask>', 0.0)]
    t = unigram(v, 3, charsmap)
    t.add_special_tokens(special('<s>', '<pad>', '</s>', '<unk>', 'en_XX', 'ro_RO'))
    t.post_processor = template('$A </s> en_XX', '$A $B </s> en_XX', t, '</s>', 'en_XX')
    return t


def t5(vocabulary, charsmap):
    v = [('<pad>', 0.0), ('</s>', 0.0), ('<unk>', 0.0)] + vocabulary[3:]
    v += [(f'<extra_id_{i}>', 0.0) for i in range(9, -1, -1)]
    t = unigram(v, 2, charsmap)
    t.add_special_tokens(special('<pad>', '</s>', '<unk>', *[f'<extra_id_{i}>' for i in range(9, -1, -1)]))
    t.post_processor = template('$A </s>', '$A </s> $B </s>', t, '</s>')
    return t


def deberta(vocabulary, charsmap):
    v = [('[PAD]', 0.0), ('[CLS]', 0.0), ('[SEP]', 0.0), ('[UNK]', 0.0)] + vocabulary[3:]
    t = unigram(v, 3, charsmap, more=[N.Strip(), N.Replace('\n', ' ')])
    t.add_special_tokens(special('[PAD]', '[CLS]', '[SEP]') + [AddedToken('[UNK]', special=True, normalized=True)])
    t.post_processor = template('[CLS] $A [SEP]', '[CLS] $A [SEP] $B:1 [SEP]:1', t, '[CLS]', '[SEP]')
    return t


def sentencepiece_bpe(normalizer, pre, decoder, extra, more=()):
    t = Tokenizer(models.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    bytes_ = [f'<0x{i:02X}>' for i in range(256)]
    t.train_from_iterator((line.replace(' ', '\u2581') for line in CORPUS), trainers.BpeTrainer(
        vocab_size=900, special_tokens=['<unk>', '<s>', '</s>'] + bytes_, limit_alphabet=200,
        show_progress=False))
    t.decoder = decoder
    data = json.loads(t.to_str())
    data['added_tokens'] = [a for a in data['added_tokens'] if a['content'] not in bytes_]
    t = Tokenizer.from_str(json.dumps(data))
    t.add_special_tokens(special(*more))
    if extra:
        t.post_processor = template(*extra, t, '<s>')
    return t


LLAMA_DECODER = [D.Replace('\u2581', ' '), D.ByteFallback(), D.Fuse(), D.Strip(' ', 1, 0)]


def llama2():
    return sentencepiece_bpe(N.Sequence([N.Prepend('\u2581'), N.Replace(' ', '\u2581')]), None,
                             D.Sequence(LLAMA_DECODER), ('<s> $A', '<s> $A <s>:1 $B:1'))


def mistral():
    return sentencepiece_bpe(None, P.Metaspace(prepend_scheme='first', split=False),
                             D.Sequence(LLAMA_DECODER), ('<s> $A', '<s> $A <s>:1 $B:1'), ('[INST]', '[/INST]'))


def gemma():
    return sentencepiece_bpe(N.Replace(' ', '\u2581'), P.Split(' ', 'merged_with_previous'),
                             D.Sequence(LLAMA_DECODER[:3]), ('<s> $A', '<s> $A <s>:1 $B:1'),
                             ('<start_of_turn>', '<end_of_turn>'))


def nllb(charsmap):
    t = sentencepiece_bpe(N.Precompiled(base64.b64decode(charsmap)), P.Metaspace(prepend_scheme='always'),
                          D.Metaspace(), None, ('eng_Latn', 'fra_Latn'))
    t.post_processor = template('eng_Latn $A </s>', 'eng_Latn $A $B </s>', t, 'eng_Latn', '</s>')
    return t


def falcon():
    t = byte_level(['<|endoftext|>'])
    t.pre_tokenizer = P.Sequence([P.Punctuation('contiguous'), P.ByteLevel(add_prefix_space=False),
                                  P.Digits(False), P.Split(Regex('[0-9][0-9][0-9]'), 'isolated')])
    return t


def families():
    vocabulary, charsmap = pieces(600, 'unigram')
    yield 'bert-uncased', bert(False)
    yield 'bert-cased', bert(True)
    yield 'gpt2', gpt2()
    yield 'roberta', roberta()
    yield 'llama3', llama3()
    yield 'qwen2', qwen2()
    yield 'clip', clip()
    yield 'falcon', falcon()
    yield 'llama2', llama2()
    yield 'mistral', mistral()
    yield 'gemma', gemma()
    yield 'nllb', nllb(charsmap)
    yield 'xlm-roberta', xlm_roberta(vocabulary, charsmap)
    yield 'mbart', mbart(vocabulary, charsmap)
    yield 't5', t5(vocabulary, charsmap)
    yield 'deberta-v3', deberta(vocabulary, charsmap)


# ---- Random pipelines ----------------------------------------------------------------------------

R = random.Random(23)
LETTERS = [chr(c) for c in range(0x20, 0x7f)] + list(
    '\u00e9\u00e0\u00fc\u00df\u0130\u0131\u01c5\ufb01\u00bd\u00b2\u0149\u0390\u1f04\u03a3\u03c2\u212b\ud55c\uae00\u1161'
    '\u11a8\u304c\u309b\u3000\u33a3\u2460\u2167\u4e2d\u6587\uff0c\u3002\u200b\u200d\ufeff\u00a0\u0301\u0323\u0308\U0001f600'
    '\U0001f468\u0e33\u0f71\u0344\ufb1d\u2126\x01\x7f\u0085\u2028\ufffd\u2581\u0120\u010a')
BEHAVIORS = ['isolated', 'removed', 'merged_with_previous', 'merged_with_next', 'contiguous']


def coin(p=0.5):
    return R.random() < p


def random_text():
    return ''.join(R.choice(LETTERS) if coin(0.6) else R.choice('ab e\u00e9 1.,') for _ in range(R.randrange(24)))


def random_normalizer(charsmap):
    return R.choice([
        N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.StripAccents(), N.Nmt(), N.ByteLevel(),
        N.Strip(coin(), coin()), N.Prepend(R.choice(['\u2581', ' ', 'ab'])),
        N.Replace(R.choice(['a', 'e', ' ', '  ', '\u00e9']), R.choice(['', 'b', 'xy', '\u2581'])),
        N.Replace(Regex(R.choice([' {2,}', '[^a-z]', r'\s+$', r'\p{L}+', "''|``"])), R.choice(['', '-', '\u2581 '])),
        N.BertNormalizer(coin(0.7), coin(0.7), R.choice([None, True, False]), coin()),
        N.Precompiled(base64.b64decode(charsmap)),
    ])


def random_pre_tokenizer():
    return R.choice([
        P.BertPreTokenizer(), P.Whitespace(), P.WhitespaceSplit(), P.Digits(coin()), P.ByteLevel(coin(), coin(), coin()),
        P.Metaspace('\u2581', R.choice(['always', 'never', 'first']), coin(0.7)), P.Punctuation(R.choice(BEHAVIORS)),
        P.CharDelimiterSplit(R.choice('a.e')), P.FixedLength(R.randrange(1, 4)),
        P.Split(R.choice([' ', 'a', Regex(r'\d'), Regex(r'\s+')]), R.choice(BEHAVIORS), coin(0.3)),
    ])


def random_post_processor():
    specials = [('[CLS]', 2), ('[SEP]', 1)]
    return R.choice([
        None, C.BertProcessing(specials[1], specials[0]), C.RobertaProcessing(specials[1], specials[0], coin(), coin()),
        C.TemplateProcessing('[CLS] $A [SEP]', '[CLS] $A [SEP] $B:1 [SEP]:1', specials), C.ByteLevel(coin()),
        C.Sequence([C.ByteLevel(coin()), C.TemplateProcessing('$A [SEP]', '[CLS] $B:1 $A', specials)]),
    ])


def random_model():
    some = [c for c in LETTERS if coin(0.6)]
    vocabulary = {'[UNK]': 0, '[SEP]': 1, '[CLS]': 2}
    for c in some + ['a', 'b', ' ', 'e']:
        vocabulary.setdefault(c, len(vocabulary))
    kind = R.randrange(4)
    if kind == 0:
        for c in list(vocabulary)[3:] + ['ab', 'e ', 'ba']:
            vocabulary.setdefault('##' + c, len(vocabulary))
        return models.WordPiece(vocabulary, unk_token='[UNK]')
    if kind == 1:
        vocabulary.setdefault('ab', len(vocabulary))
        return models.WordLevel(vocabulary, unk_token='[UNK]')
    if kind == 2:
        scores = [('[UNK]', 0.0), ('[SEP]', 0.0), ('[CLS]', 0.0)]
        scores += [(c, -round(R.random() * 8, 3)) for c in list(vocabulary)[3:]]
        scores += [(c, -round(R.random() * 6, 3)) for c in ('ab', 'ba', 'e ', '\u2581a', 'aab')]
        return models.Unigram(scores, 0)
    merges = []
    for left, right in (('a', 'b'), ('e', ' '), ('ab', 'e '), (' ', ' '), ('b', 'a')):
        if left in vocabulary and right in vocabulary:
            vocabulary.setdefault(left + right, len(vocabulary))
            merges.append((left, right))
    return models.BPE(vocabulary, merges, unk_token=R.choice([None, '[UNK]']), fuse_unk=coin(), ignore_merges=coin(0.2))


def random_tokenizer(charsmap):
    t = Tokenizer(random_model())
    count = R.randrange(4)
    if count > 0:
        t.normalizer = N.Sequence([random_normalizer(charsmap) for _ in range(count)])
    count = R.randrange(4)
    if count > 0:
        t.pre_tokenizer = P.Sequence([random_pre_tokenizer() for _ in range(count)])
    post = random_post_processor()
    if post:
        t.post_processor = post
    if coin():
        t.add_tokens([AddedToken(R.choice(['ab', '<x>', ' b']), lstrip=coin(0.3), rstrip=coin(0.3),
                                 single_word=coin(0.3), normalized=coin())])
    return t


def components(charsmap):
    for _ in range(150):
        t = random_tokenizer(charsmap)
        rows = [(random_text(), random_text() if coin(0.4) else None) for _ in range(16)]
        yield [json.loads(saved(t, charsmap)), [[a, b, digest([encoding(t, a, b)])] for a, b in rows]]


# ---- Writing -------------------------------------------------------------------------------------


def write(name, rows):
    with open(os.path.join(HERE, name), 'w', encoding='utf-8') as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=True, separators=(',', ':')) + '\n')


def main():
    charsmap = pieces(600, 'unigram')[1]
    with open(os.path.join(HERE, 'nmt_nfkc.txt'), 'w', encoding='ascii') as file:
        file.write(charsmap + '\n')
    write('tokenizer-families.jsonl', (
        [name, json.loads(saved(t, charsmap)), blocks(t, [(line,) for line in LINES]), blocks(t, PAIRS)]
        for name, t in families()))
    write('tokenizer-components.jsonl', components(charsmap))


if __name__ == '__main__':
    main()
