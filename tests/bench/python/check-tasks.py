#!/usr/bin/env python3
#
# check-tasks.py - the table of docs/tasks.md: which published architecture works with which form of
# tokenizer for which task, from a text to the printed result.
#
#     python3 -m venv /tmp/venv
#     /tmp/venv/bin/pip install torch transformers==5.24.0 tokenizers sentencepiece safetensors protobuf
#     /tmp/venv/bin/python tests/bench/python/check-tasks.py [NAME...] [--build FOLDER]
#
# Each case is a random checkpoint that transformers saves, with one of the tokenizers that
# tests/golden/make-tokenizer-sources.py has trained.  It is converted; then texts go through ft-run, and
# the same texts through transformers in float32.  "works" means that token ids are equal and that
# outputs differ by at most 1e-4 (generated ids: not at all).  A refusal shows the message.
#
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import sentencepiece
import torch
import transformers as hf
from safetensors.numpy import load_file

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..')
SOURCES = os.path.join(TOP, 'tests', 'golden', 'tokenizer-sources')
TEXTS = ['The quick brown fox jumps over the lazy dog.', 'Größe: 1,234.5 µm², naïve café', 'a']
PAIRS = [('Who wrote it?', 'The book was written by Ada.'), ('What is 2 + 2?', 'It is 4.')]
TOLERANCE = 1e-4

# ---- Tokenizers ---------------------------------------------------------------------------------


def added(*tokens):
    flags = {'lstrip': False, 'rstrip': False, 'single_word': False, 'normalized': False, 'special': True}
    return {str(i): dict(flags, content=t) for i, t in tokens}


MASK = {'__type': 'AddedToken', 'content': '<mask>', 'lstrip': True, 'rstrip': False, 'single_word': False,
        'normalized': False}  # as roberta-base has it
NLLB = hf.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES + ['<mask>']
N_PIECES = sentencepiece.SentencePieceProcessor(
    model_file=os.path.join(SOURCES, 'bpe.model')).get_piece_size()
NLLB_TOKENS = added((0, '<s>'), (1, '<pad>'), (2, '</s>'), (3, '<unk>'),
                    *[(N_PIECES + 1 + i, token) for i, token in enumerate(NLLB)])

# name: (files of a checkpoint, tokenizer_config.json)
FORMS = {
    'vocab.txt': ({'vocab.txt': 'uncased.txt'}, {'tokenizer_class': 'BertTokenizer'}),
    'vocab.json + merges.txt': ({'vocab.json': 'vocab.json', 'merges.txt': 'merges.txt'},
                                {'tokenizer_class': 'RobertaTokenizer', 'mask_token': MASK}),
    'vocab.json + merges.txt (Qwen2)': (
        {'vocab.json': 'vocab.json', 'merges.txt': 'merges.txt'},
        {'tokenizer_class': 'Qwen2Tokenizer', 'eos_token': '<|endoftext|>',
         'added_tokens_decoder': added((5, '<|endoftext|>'))}),
    'tokenizer.model': ({'tokenizer.model': 'llama.model'},
                        {'tokenizer_class': 'LlamaTokenizer', 'add_bos_token': True}),
    'sentencepiece.bpe.model (Unigram)': ({'sentencepiece.bpe.model': 'unigram.model'},
                                          {'tokenizer_class': 'XLMRobertaTokenizer'}),
    'sentencepiece.bpe.model (NLLB)': ({'sentencepiece.bpe.model': 'bpe.model'},
                                       {'tokenizer_class': 'NllbTokenizer', 'added_tokens_decoder': NLLB_TOKENS}),
    'sentencepiece.bpe.model + vocab.json': (
        {'sentencepiece.bpe.model': 'bpe.model', 'vocab.json': 'm2m100.json'},
        {'tokenizer_class': 'M2M100Tokenizer', 'src_lang': 'de'}),
    'vocab.txt (BertJapaneseTokenizer)': ({'vocab.txt': 'uncased.txt'},
                                          {'tokenizer_class': 'BertJapaneseTokenizer'}),
    'tokenizer.model (tiktoken)': ({'tokenizer.model': b'IQ== 0\nIg== 1\n'}, {'tokenizer_class': 'LlamaTokenizer'}),
    'source.spm + target.spm + vocab.json': (
        {'source.spm': 'source.spm', 'target.spm': 'target.spm', 'vocab.json': 'marian.json'},
        {'tokenizer_class': 'MarianTokenizer', 'source_lang': 'eng', 'target_lang': 'mul'}),
}


def write_tokenizer(folder, form):
    """The files of a form; "tokenizer.json (FORM)" is what transformers saves of it."""
    inner = form[len('tokenizer.json ('):-1] if form.startswith('tokenizer.json (') else form
    files, config = FORMS[inner]
    for name, source in files.items():
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(source if isinstance(source, bytes) else open(os.path.join(SOURCES, source), 'rb').read())
    with open(os.path.join(folder, 'tokenizer_config.json'), 'w') as out:
        json.dump(config, out)
    if inner != form:
        tokenizer = getattr(hf, config['tokenizer_class']).from_pretrained(folder)
        for name in list(files) + ['tokenizer_config.json']:
            os.remove(os.path.join(folder, name))
        tokenizer.save_pretrained(folder)


# ---- Checkpoints --------------------------------------------------------------------------------


def randomize(model):
    torch.manual_seed(11)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if 'embed_positions' in name and not p.requires_grad:
                continue  # sinusoids
            if p.dim() > 1:
                p.normal_(0, .12)
            else:
                p.add_(torch.randn_like(p) * .1)
        model.tie_weights()
    return model.eval()


def encoder_config(kind, vocab, **more):
    size = {'hidden_size': 48, 'intermediate_size': 80, 'num_hidden_layers': 2, 'num_attention_heads': 4}
    if kind == 'distilbert':
        return hf.DistilBertConfig(vocab_size=vocab, dim=48, hidden_dim=80, n_layers=2, n_heads=4,
                                   max_position_embeddings=96, **more)
    if kind == 'bert':
        return hf.BertConfig(vocab_size=vocab, max_position_embeddings=96, **size, **more)
    config = {'roberta': hf.RobertaConfig, 'xlm-roberta': hf.XLMRobertaConfig}[kind]
    return config(vocab_size=vocab, max_position_embeddings=98, type_vocab_size=1, pad_token_id=1, **size,
                  **more)


def decoder_config(kind, vocab):
    config = {'llama': hf.LlamaConfig, 'mistral': hf.MistralConfig, 'qwen2': hf.Qwen2Config,
              'qwen3': hf.Qwen3Config}[kind]
    return config(vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=128,
                  bos_token_id=1, eos_token_id=2, pad_token_id=None)


def translator_config(kind, vocab):
    size = {'d_model': 48, 'encoder_layers': 2, 'decoder_layers': 2, 'encoder_attention_heads': 4,
            'decoder_attention_heads': 4, 'encoder_ffn_dim': 80, 'decoder_ffn_dim': 80,
            'max_position_embeddings': 96}
    if kind == 'marian':
        return hf.MarianConfig(vocab_size=vocab, pad_token_id=vocab - 1, decoder_start_token_id=vocab - 1,
                               eos_token_id=0, forced_eos_token_id=0, scale_embedding=True,
                               activation_function='swish', **size)
    if kind == 'mbart':
        return hf.MBartConfig(vocab_size=vocab, **size)
    return hf.M2M100Config(vocab_size=vocab, scale_embedding=True, **size)


def write_checkpoint(folder, kind, head, form, **more):
    write_tokenizer(folder, form)
    vocab = 1200
    if kind == 'marian':
        with open(os.path.join(folder, 'vocab.json')) as text:
            vocab = len(json.load(text))
    if kind in ('bert', 'roberta', 'distilbert', 'xlm-roberta'):
        config = encoder_config(kind, vocab, **more)
    elif kind in ('marian', 'm2m_100', 'mbart'):
        config = translator_config(kind, vocab)
    else:
        config = decoder_config(kind, vocab)
    model = randomize(getattr(hf, head)(config))
    if kind == 'marian':  # as published models
        model.generation_config.bad_words_ids = [[vocab - 1]]
    model.save_pretrained(folder)
    return model


# ---- Running ------------------------------------------------------------------------------------


class Refused(Exception):
    pass


def tool(build, name, *arguments):
    run = subprocess.run([os.path.join(build, name), *arguments], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    if run.returncode != 0:
        raise Refused(run.stderr.decode().strip().split('\n')[0])
    return run.stdout.decode()


def write_texts(path, texts):
    with open(path, 'w') as out:
        out.write(''.join(('\t'.join(t) if isinstance(t, tuple) else t) + '\n' for t in texts))


def check_ids(build, folder, texts, options=()):
    """The ids of ft-tokenize, which must be those of transformers."""
    pairs = isinstance(texts[0], tuple)
    path = os.path.join(folder, 'texts')
    write_texts(path, texts)
    found = tool(build, 'ft-tokenize', '-i', folder + '.ft', *(['--pairs'] if pairs else []), *options, path)
    found = [json.loads(line) for line in found.splitlines()]
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    expected = [(tokenizer(*t) if pairs else tokenizer(t)) for t in texts]
    if [e['input_ids'] for e in expected] != found:
        raise Refused('ids differ: %s, transformers: %s' % (found[0], expected[0]['input_ids']))
    return expected


RENAMED = {'prediction_logits': 'logits'}  # of BertForPreTraining


def run_encoder(build, folder, model, texts, outputs):
    encoded = check_ids(build, folder, texts)
    out = folder + '.st'
    pairs = ['--pairs'] if isinstance(texts[0], tuple) else []
    tool(build, 'ft-run', '-i', folder + '.ft', *pairs, '--text', os.path.join(folder, 'texts'), '-o', out, '-f')
    printed = tool(build, 'ft-run', '-i', folder + '.ft', *pairs, '--text', os.path.join(folder, 'texts'))
    found, worst = load_file(out), 0
    for i, e in enumerate(encoded):
        with torch.no_grad():
            expected = model(**{k: torch.tensor([v]) for k, v in e.items()})
            expected = {RENAMED.get(k, k): v for k, v in expected.items()}
        for name in outputs:
            want = expected[name][0].numpy()
            have = found[name][i]
            worst = max(worst, float(np.abs(have[:len(want)] - want).max()))
    if worst > TOLERANCE:
        raise Refused('outputs differ by %.1e' % worst)
    return printed


def run_decoder(build, folder, model, texts, outputs):
    encoded = check_ids(build, folder, texts)
    out = folder + '.st'
    tool(build, 'ft-run', '-i', folder + '.ft', '--text', os.path.join(folder, 'texts'), '--max-new-tokens',
         '12', '--ignore-end', '-o', out, '-f')
    printed = tool(build, 'ft-run', '-i', folder + '.ft', '--max-new-tokens', '12', TEXTS[0])
    found = load_file(out)
    for i, e in enumerate(encoded):
        ids = torch.tensor([e['input_ids']])
        with torch.no_grad():
            for _ in range(12):
                ids = torch.cat([ids, model(ids).logits[:, -1].argmax(-1, keepdim=True)], 1)
        expected = ids[0, len(e['input_ids']):].tolist()
        start = len(e['input_ids'])
        generated = found['output_ids'][i][start:start + 12].tolist()
        if generated != expected:
            raise Refused('generated ids differ: %s, transformers: %s' % (generated, expected))
    return printed


def run_translator(build, folder, model, texts, outputs):
    options = outputs  # --source-lang ..., --target-lang ...
    config = model.config
    write_texts(os.path.join(folder, 'texts'), texts)
    found = tool(build, 'ft-tokenize', '-i', folder + '.ft', *options, os.path.join(folder, 'texts'))
    found = [json.loads(line) for line in found.splitlines()]
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    if options:
        tokenizer.src_lang = options[1]
    expected = [tokenizer(t)['input_ids'] for t in texts]
    if found != expected:
        raise Refused('ids differ: %s, transformers: %s' % (found[0], expected[0]))
    forced = tokenizer.convert_tokens_to_ids(options[3]) if options else None
    if options and hasattr(tokenizer, 'get_lang_id'):
        forced = tokenizer.get_lang_id(options[3])
    out = folder + '.st'
    tool(build, 'ft-run', '-i', folder + '.ft', *options, '--text', os.path.join(folder, 'texts'),
         '--max-new-tokens', '10', '--ignore-end', '-o', out, '-f')
    printed = tool(build, 'ft-run', '-i', folder + '.ft', *options, '--beams', '2', '--max-new-tokens', '6',
                   TEXTS[0])
    output = load_file(out)['output_ids']
    for i, ids in enumerate(expected):
        decoded = [config.decoder_start_token_id] + ([forced] if forced is not None else [])
        with torch.no_grad():
            while len(decoded) < 11:
                logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([decoded])).logits
                logits = logits[0, -1]
                if kind_of(model) == 'marian':
                    logits[config.pad_token_id] = -float('inf')
                decoded.append(int(logits.argmax()))
        have = output[i].tolist()[:9]
        if have not in (decoded[1:10], decoded[:9]):
            raise Refused('generated ids differ: %s, transformers: %s' % (have, decoded))
    return printed


def kind_of(model):
    return model.config.model_type


# ---- Cases --------------------------------------------------------------------------------------

BERT, ROBERTA, XLMR = 'vocab.txt', 'vocab.json + merges.txt', 'sentencepiece.bpe.model (Unigram)'
QWEN, LLAMA = 'vocab.json + merges.txt (Qwen2)', 'tokenizer.model'


def saved(form):
    return 'tokenizer.json (%s)' % form


HEADS = [('Model', 'hidden states', TEXTS, ['last_hidden_state'], {}),
         ('ForSequenceClassification', 'classification', TEXTS, ['logits'], {'num_labels': 4}),
         ('ForSequenceClassification', 'multi-label classification', TEXTS, ['logits'],
          {'num_labels': 3, 'problem_type': 'multi_label_classification'}),
         ('ForSequenceClassification', 'rerank (pairs, one score)', PAIRS, ['logits'], {'num_labels': 1}),
         ('ForTokenClassification', 'entities', TEXTS, ['logits'], {'num_labels': 5}),
         ('ForQuestionAnswering', 'question answering', PAIRS, ['start_logits', 'end_logits'], {}),
         ('ForMaskedLM', 'masked words', None, ['logits'], {})]
MASKS = {BERT: ['The [MASK] fox', 'a [MASK]'], ROBERTA: ['The <mask> fox', 'a<mask>'],
         XLMR: ['The <mask> fox', 'a <mask>']}


def encoder_cases():
    for kind, prefix, forms in [('bert', 'Bert', [BERT, saved(BERT), saved(XLMR), XLMR]),
                                ('distilbert', 'DistilBert', [BERT, saved(BERT)]),
                                ('roberta', 'Roberta', [ROBERTA, saved(ROBERTA)])]:
        for form in forms:
            for head, task, texts, outputs, more in HEADS:
                inner = form if form in MASKS else form[len('tokenizer.json ('):-1]
                yield (kind, prefix + head, form, task, run_encoder, texts or MASKS[inner], outputs, more)


def cases():
    yield from encoder_cases()
    for kind, prefix, forms in [('llama', 'Llama', [LLAMA, saved(LLAMA), saved(QWEN)]),
                                ('mistral', 'Mistral', [LLAMA, saved(LLAMA)]),
                                ('qwen2', 'Qwen2', [QWEN, saved(QWEN)]),
                                ('qwen3', 'Qwen3', [QWEN, saved(QWEN)])]:
        for form in forms:
            yield (kind, prefix + 'ForCausalLM', form, 'text generation', run_decoder, TEXTS, [], {})
    yield ('bert', 'BertForPreTraining', BERT, 'masked words', run_encoder, MASKS[BERT], ['logits'], {})
    m2m, nllb = 'sentencepiece.bpe.model + vocab.json', 'sentencepiece.bpe.model (NLLB)'
    marian = 'source.spm + target.spm + vocab.json'
    de_fr = ['--source-lang', 'de', '--target-lang', 'fr']
    deu_fra = ['--source-lang', 'deu_Latn', '--target-lang', 'fra_Latn']
    for kind, head, form, options in [
            ('m2m_100', 'M2M100ForConditionalGeneration', m2m, de_fr),
            ('m2m_100', 'M2M100ForConditionalGeneration', nllb, deu_fra),
            ('m2m_100', 'M2M100ForConditionalGeneration', saved(nllb), deu_fra),
            ('marian', 'MarianMTModel', marian, []),
            ('mbart', 'MBartForConditionalGeneration', nllb, de_fr)]:
        yield (kind, head, form, 'translation', run_translator, TEXTS[:2], options, {})
    for kind, head, form in [
            ('xlm-roberta', 'XLMRobertaForSequenceClassification', XLMR),
            ('bert', 'BertForNextSentencePrediction', BERT), ('bert', 'BertForMultipleChoice', BERT),
            ('bert', 'BertLMHeadModel', BERT),
            ('roberta', 'RobertaForCausalLM', ROBERTA),
            ('llama', 'LlamaForSequenceClassification', LLAMA), ('qwen3', 'Qwen3Model', QWEN),
            ('bert', 'BertModel', 'vocab.txt (BertJapaneseTokenizer)'),
            ('llama', 'LlamaForCausalLM', 'tokenizer.model (tiktoken)')]:
        yield (kind, head, form, 'its task', run_encoder, TEXTS, ['logits'], {})


def run(build, kind, head, form, task, runner, texts, outputs, more):
    folder = tempfile.mkdtemp()
    checkpoint = os.path.join(folder, 'CHECKPOINT')
    os.mkdir(checkpoint)
    try:
        model = write_checkpoint(checkpoint, kind, head, form, **more)
        tool(build, 'ft-convert', '-q', '-i', checkpoint, '-o', checkpoint + '.ft')
        printed = runner(build, checkpoint, model, texts, outputs)
        return ('works', printed.strip().split('\n')[0]) if printed.strip() else ('works', '')
    except Refused as why:
        return 'refused', str(why).replace(folder + '/', '')
    finally:
        shutil.rmtree(folder)


def print_working(rows):
    """A row for each architecture and task, with the forms of tokenizers that work."""
    print('| architecture | task | tokenizers |\n|---|---|---|')
    for (head, task), forms in rows.items():
        print('| %s | %s | %s |' % (head, task, '; '.join(forms)))


def print_refused(rows):
    print('\n| architecture | tokenizer | message |\n|---|---|---|')
    for row in rows:
        print('| %s | %s | %s |' % row)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=TOP)
    parser.add_argument('name', nargs='*')
    options = parser.parse_args()
    hf.logging.set_verbosity_error()
    working, refused = {}, []
    for case in cases():
        if options.name and not any(n in ' '.join(case[:4]) for n in options.name):
            continue
        result, text = run(options.build, *case)
        if result == 'works':
            working.setdefault((case[1], case[3]), []).append(case[2])
        else:
            refused.append((case[1], case[2], text))
        print('.', end='', file=sys.stderr, flush=True)
    print_working(working)
    print_refused(refused)


if __name__ == '__main__':
    main()
