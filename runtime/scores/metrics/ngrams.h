/*
 * ngrams.h - count n-grams and their matches in two sequences of symbols.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_NGRAMS_H
#define FT_RUNTIME_SCORES_METRICS_NGRAMS_H

#include "runtime/ft.h"

enum { FT_NGRAM_MAX_ORDER = 6 };

/* A sequence of symbols: characters, or numbers of words. Zero-initialize it. */
typedef struct ft_symbols {
    uint32_t *symbol; /* [count] */
    uint32_t *suffix; /* [count]: starts of the suffixes, in order; NULL before sorting */
    size_t count, capacity;
} ft_symbols;

/* Append a symbol; false when out of memory. */
FT_MUST_USE bool ft_symbols_append(ft_symbols *symbols, uint32_t symbol);

/* Sort the suffixes by their first FT_NGRAM_MAX_ORDER symbols; false when out of memory. */
FT_MUST_USE bool ft_symbols_sort(ft_symbols *symbols);

void ft_symbols_fini(ft_symbols *symbols);

/* The number of n-grams of `order` symbols. */
static inline size_t ft_ngram_count(const ft_symbols *symbols, size_t order)
{
    return symbols->count < order ? 0 : symbols->count - order + 1;
}

/*
 * The number of n-grams that occur in both, counted as often as in the one that has fewer of them.
 * Both are sorted.
 */
size_t ft_ngram_matches(const ft_symbols *a, const ft_symbols *b, size_t order);

#endif
