/*
 * ngrams.c - one sort serves all orders: suffixes that are in the order of six symbols are also in
 * the order of their first one to five.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/ngrams.h"

#include "runtime/mem.h"

#include <stdlib.h>

bool ft_symbols_append(ft_symbols *symbols, uint32_t symbol)
{
    if (symbols->count == symbols->capacity) {
        uint32_t *grown = ft_array_grow(symbols->symbol, &symbols->capacity, 64, sizeof *grown);
        if (grown == NULL)
            return false;
        symbols->symbol = grown;
    }
    symbols->symbol[symbols->count++] = symbol;
    return true;
}

void ft_symbols_fini(ft_symbols *symbols)
{
    free(symbols->symbol);
    free(symbols->suffix);
    *symbols = (ft_symbols){ 0 };
}

/* Compare two suffixes up to `order` symbols; the shorter one comes first. */
static int compare(const ft_symbols *a, uint32_t i, const ft_symbols *b, uint32_t j, size_t order)
{
    size_t n = ft_min_size(a->count - i, order), m = ft_min_size(b->count - j, order);
    for (size_t k = 0; k < n && k < m; k++) {
        uint32_t x = a->symbol[i + k], y = b->symbol[j + k];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return n < m ? -1 : n > m;
}

static int compare_suffixes(const void *a, const void *b, void *of)
{
    return compare(of, *(const uint32_t *) a, of, *(const uint32_t *) b, FT_NGRAM_MAX_ORDER);
}

bool ft_symbols_sort(ft_symbols *symbols)
{
    free(symbols->suffix);
    symbols->suffix = ft_calloc(symbols->count, sizeof *symbols->suffix);
    if (symbols->suffix == NULL)
        return false;
    for (size_t i = 0; i < symbols->count; i++)
        symbols->suffix[i] = (uint32_t) i;
    qsort_r(symbols->suffix, symbols->count, sizeof *symbols->suffix, compare_suffixes, symbols);
    return true;
}

/* Skip suffixes that are too short for an n-gram. */
static size_t skip_short(const ft_symbols *s, size_t at, size_t order)
{
    while (at < s->count && s->count - s->suffix[at] < order)
        at++;
    return at;
}

size_t ft_ngram_matches(const ft_symbols *a, const ft_symbols *b, size_t order)
{
    size_t i = skip_short(a, 0, order), j = skip_short(b, 0, order), matches = 0;
    while (i < a->count && j < b->count) {
        int sign = compare(a, a->suffix[i], b, b->suffix[j], order);
        matches += sign == 0;
        if (sign <= 0)
            i = skip_short(a, i + 1, order);
        if (sign >= 0)
            j = skip_short(b, j + 1, order);
    }
    return matches;
}
