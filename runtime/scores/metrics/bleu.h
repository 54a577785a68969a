/*
 * bleu.h - BLEU of a corpus of translations, as sacreBLEU computes it by default: one reference
 * each, tokenizer 13a, 4-grams, case, exponential smoothing.
 *
 * Post, "A Call for Clarity in Reporting BLEU Scores", WMT 2018.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_BLEU_H
#define FT_RUNTIME_SCORES_METRICS_BLEU_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_BLEU_ORDER = 4 };

/* Sums over all sentences. Zero-initialize it. */
typedef struct ft_bleu {
    size_t matches[FT_BLEU_ORDER], total[FT_BLEU_ORDER]; /* n-grams of 1 to 4 words */
    size_t words, reference_words;
} ft_bleu;

/* Add a sentence (both valid UTF-8); false when out of memory. */
FT_MUST_USE bool ft_bleu_add(ft_bleu *bleu, const char *hypothesis, size_t bytes,
                             const char *reference, size_t reference_bytes);

/* The score, 0 to 100. */
double ft_bleu_score(const ft_bleu *bleu);

#pragma GCC visibility pop

#endif
