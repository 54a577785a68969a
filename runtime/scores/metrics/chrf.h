/*
 * chrf.h - chrF2 of a corpus of translations, as sacreBLEU computes it by default: one reference
 * each, n-grams of 1 to 6 characters without white space, no word n-grams.
 *
 * Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_CHRF_H
#define FT_RUNTIME_SCORES_METRICS_CHRF_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_CHRF_ORDER = 6 };

/* Sums over all sentences. Zero-initialize it. */
typedef struct ft_chrf {
    size_t hypothesis[FT_CHRF_ORDER], reference[FT_CHRF_ORDER], matches[FT_CHRF_ORDER];
} ft_chrf;

/* Add a sentence (both valid UTF-8); false when out of memory. */
FT_MUST_USE bool ft_chrf_add(ft_chrf *chrf, const char *hypothesis, size_t bytes,
                             const char *reference, size_t reference_bytes);

/* The score, 0 to 100. */
double ft_chrf_score(const ft_chrf *chrf);

#pragma GCC visibility pop

#endif
