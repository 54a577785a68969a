#!/usr/bin/env python3
#
# make-metrics.py - ask the published implementations for the metrics of random predictions.
#
#     python3 -m venv /tmp/venv
#     /tmp/venv/bin/pip install scikit-learn==1.9.1 seqeval==1.2.2 sacrebleu==2.6.0 scipy==1.17.1 numpy==2.4.6
#     /tmp/venv/bin/python tests/golden/make-metrics.py
#
# writes metrics.json beside itself.  SQuAD's evaluation script is no package; answer_score() follows
# its definition: https://rajpurkar.github.io/SQuAD-explorer/.
#
# SPDX-License-Identifier: Apache-2.0

import collections
import json
import os
import random
import re
import string
import warnings

import sacrebleu
import numpy
from scipy.stats import pearsonr, spearmanr
from seqeval.metrics import f1_score as entity_f1, precision_score, recall_score
from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, top_k_accuracy_score

from varied_lines import ACCENTS, CODE, EMOJI, ENGLISH, SCRIPTS

warnings.simplefilter('ignore')
R = random.Random(23)
PIECES = ENGLISH + ACCENTS + SCRIPTS + EMOJI + [
    '3.14', '1,000,000', '9-5', 'U.S.', '...', '--', '-', "it's", '"quoted"', '(a)', '[b]', '50%', 'a/b',
    'x.', '.y', ',5', '5,', '&quot;', '&amp;lt;', '<skipped>', 'e.g.,', '$9.99!', '\u3000', '\x1c', 'a\u00a0b', '¿Qué?', '2-3-4',
    'the', 'a', 'an', 'The', 'A.', 'a-the-an', 'naïve', '“the”']


def sentence(most=14):
    return ' '.join(R.choice(PIECES) for _ in range(R.randrange(most)))


def edit(text):
    """A translation or answer that resembles the reference."""
    words = text.split(' ')
    for _ in range(R.randrange(4)):
        at = R.randrange(len(words) + 1)
        if R.random() < 0.5:
            words.insert(at, R.choice(PIECES))
        elif at < len(words):
            words.pop(at)
    return ' '.join(words)


def translations():
    out = []
    for size in (1, 1, 1, 2, 5, 40, 40):
        references = [sentence() for _ in range(size)]
        found = [edit(text) if R.random() < 0.9 else sentence() for text in references]
        out.append({
            'pairs': list(map(list, zip(found, references))),
            'bleu': sacrebleu.corpus_bleu(found, [references]).score,
            'chrf': sacrebleu.corpus_chrf(found, [references]).score,
        })
    for line in CODE:
        changed = edit(line)
        out.append({'pairs': [[changed, line]],
                    'bleu': sacrebleu.corpus_bleu([changed], [[line]]).score,
                    'chrf': sacrebleu.corpus_chrf([changed], [[line]]).score})
    return out


def entities():
    tags = ['O', 'O', 'O'] + [f'{letter}-{kind}' for letter in 'BI' for kind in ('PER', 'LOC', 'A-B')]
    tags += ['E-PER', 'S-LOC', 'B', 'I']
    out = []
    for rows in (1, 1, 3, 30):
        expected = [[R.choice(tags) for _ in range(R.randrange(1, 12))] for _ in range(rows)]
        found = [[tag if R.random() < 0.8 else R.choice(tags) for tag in row] for row in expected]
        out.append({
            'rows': [[list(a), list(b)] for a, b in zip(found, expected)],
            'precision': float(precision_score(expected, found)),
            'recall': float(recall_score(expected, found)),
            'f1': float(entity_f1(expected, found)),
        })
    return out


def normalized(text):
    text = ''.join(c for c in text.lower() if c not in set(string.punctuation))
    return ' '.join(re.sub(r'\b(a|an|the)\b', ' ', text).split())


def answer_score(found, expected):
    expected = [text for text in expected if normalized(text)] or ['']
    exact = max(float(normalized(found) == normalized(text)) for text in expected)
    best = 0.0
    for text in expected:
        a, b = normalized(found).split(), normalized(text).split()
        common = sum((collections.Counter(a) & collections.Counter(b)).values())
        if not a or not b:
            best = max(best, float(a == b))
        elif common:
            precision, recall = common / len(a), common / len(b)
            best = max(best, 2 * precision * recall / (precision + recall))
    return exact, best


def answers():
    out = []
    for _ in range(120):
        expected = [sentence(6) for _ in range(R.randrange(4))]
        found = edit(R.choice(expected)) if expected and R.random() < 0.8 else sentence(3)
        exact, f1 = answer_score(found, expected)
        out.append({'found': found, 'expected': expected, 'exact': exact, 'f1': f1})
    return out


def ranks():
    out = []
    for count in (2, 3, 10, 200):
        x = [round(R.uniform(-1, 1), 1 if count > 5 else 3) for _ in range(count)]
        y = [round(v + R.uniform(-1, 1), 2) for v in x]
        out.append({'x': x, 'y': y, 'spearman': float(spearmanr(x, y).statistic)})
    return out


def labels():
    out = []
    for count, kinds in ((1, 2), (5, 4), (300, 6), (50, 9)):
        expected = [R.randrange(kinds) for _ in range(count)]
        found = [v if R.random() < 0.6 else R.randrange(kinds) for v in expected]
        out.append({'expected': expected, 'found': found, 'labels': kinds,
                    'macro_f1': float(f1_score(expected, found, average='macro', zero_division=0))})
    return out


def logits(rows, kinds):
    """Different numbers that float32 has exactly, so that no rank depends on rounding."""
    return [[n / 64 for n in R.sample(range(-200, 200), kinds)] for _ in range(rows)]


def classes():
    out = []
    for rows, kinds in ((1, 2), (40, 3), (60, 9), (30, 40)):
        found = logits(rows, kinds)
        expected = [max(range(kinds), key=row.__getitem__) if R.random() < 0.5 else R.randrange(kinds)
                    for row in found]
        best = [max(range(kinds), key=row.__getitem__) for row in found]
        out.append({'logits': found, 'labels': expected, 'accuracy': float(accuracy_score(expected, best)),
                    'macro_f1': float(f1_score(expected, best, average='macro', zero_division=0))})
        if kinds > 5:
            out[-1]['top5_accuracy'] = float(top_k_accuracy_score(expected, found, k=5, labels=range(kinds)))
    return out


def label_sets():
    out = []
    for rows, kinds in ((1, 3), (30, 4), (20, 12), (12, 1)):
        found = logits(rows, kinds)
        positive = numpy.array(found) > 0  # a probability above 0.5
        expected = numpy.array([[int(p) if R.random() < 0.7 else R.randrange(2) for p in row] for row in positive])
        if kinds == 12:
            expected[:, 3] = 0
            for row in found:
                row[3] = -abs(row[3]) - 1 / 128
            positive = numpy.array(found) > 0
        found_labels = positive.astype(int)
        binary = kinds == 1  # scikit-learn reads one column as two classes; label 1 alone counts
        options = {'labels': [1], 'average': 'macro'} if binary else {'average': 'macro'}
        out.append({'logits': found, 'labels': expected.tolist(),
                    'accuracy': float((found_labels == expected).mean()),
                    'exact_match': float(accuracy_score(expected, found_labels)),
                    'micro_f1': float(f1_score(expected, found_labels, zero_division=0,
                                               **dict(options, average='micro'))),
                    'macro_f1': float(f1_score(expected, found_labels, zero_division=0, **options))})
        if binary:  # equal to the accuracy
            del out[-1]['exact_match']
    return out


def regressions():
    out = []
    for rows, kinds in ((2, 1), (50, 1), (40, 3)):
        found = logits(rows, kinds)
        expected = [[round((n + R.uniform(-2, 2)) * 8) / 8 for n in row] for row in found]
        x, y = numpy.array(found), numpy.array(expected)
        out.append({'logits': found, 'labels': expected, 'mse': float(mean_squared_error(y, x)),
                    'pearson': float(numpy.mean([pearsonr(x[:, i], y[:, i]).statistic for i in range(kinds)])),
                    'spearman': float(numpy.mean([spearmanr(x[:, i], y[:, i]).statistic for i in range(kinds)]))})
    return out


metrics = {'translations': translations(), 'entities': entities(), 'answers': answers(), 'ranks': ranks(),
           'labels': labels(), 'classes': classes(), 'label_sets': label_sets(), 'regressions': regressions()}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'metrics.json'), 'w') as file:
    json.dump(metrics, file, ensure_ascii=True, separators=(',', ':'))
    file.write('\n')
