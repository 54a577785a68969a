/*
 * chrf.c - precision and recall are averaged over the orders that both texts have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/chrf.h"

#include "runtime/scores/metrics/ngrams.h"
#include "runtime/scores/metrics/words.h"

static bool add_characters(ft_symbols *symbols, const char *text, size_t bytes)
{
    for (const char *next = text, *end = text + bytes; next < end;) {
        uint32_t c = ft_utf8_decode_next(&next);
        if (!ft_is_python_space(c) && !ft_symbols_append(symbols, c))
            return false;
    }
    return ft_symbols_sort(symbols);
}

/* N-grams of an order that the reference lacks altogether do not count against the hypothesis. */
static void add_counts(ft_chrf *chrf, const ft_symbols *hypothesis, const ft_symbols *reference)
{
    for (size_t order = 1; order <= FT_CHRF_ORDER; order++) {
        size_t expected = ft_ngram_count(reference, order);
        chrf->hypothesis[order - 1] += expected > 0 ? ft_ngram_count(hypothesis, order) : 0;
        chrf->reference[order - 1] += expected;
        chrf->matches[order - 1] += ft_ngram_matches(hypothesis, reference, order);
    }
}

bool ft_chrf_add(ft_chrf *chrf, const char *hypothesis, size_t bytes, const char *reference,
                 size_t reference_bytes)
{
    ft_symbols symbols[2] = { 0 };
    bool ok = add_characters(&symbols[0], hypothesis, bytes) &&
              add_characters(&symbols[1], reference, reference_bytes);
    if (ok)
        add_counts(chrf, &symbols[0], &symbols[1]);
    ft_symbols_fini(&symbols[0]);
    ft_symbols_fini(&symbols[1]);
    return ok;
}

double ft_chrf_score(const ft_chrf *chrf)
{
    const double beta_squared = 4.0;
    double precision = 0.0, recall = 0.0, orders = 0.0;
    for (size_t i = 0; i < FT_CHRF_ORDER; i++) {
        if (chrf->hypothesis[i] == 0 || chrf->reference[i] == 0)
            continue;
        precision += (double) chrf->matches[i] / (double) chrf->hypothesis[i];
        recall += (double) chrf->matches[i] / (double) chrf->reference[i];
        orders += 1.0;
    }
    if (precision + recall == 0.0)
        return 0.0;
    precision /= orders;
    recall /= orders;
    return 100.0 * (1.0 + beta_squared) * precision * recall / (beta_squared * precision + recall);
}
