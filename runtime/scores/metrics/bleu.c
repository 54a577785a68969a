/*
 * bleu.c - words become numbers, the same in hypothesis and reference; n-grams of numbers match.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/bleu.h"

#include "kernels/math/elementary.h"
#include "runtime/scores/metrics/bleu_words.h"
#include "runtime/scores/metrics/ngrams.h"
#include "runtime/scores/metrics/words.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text;
    size_t bytes;
    size_t index; /* position in hypothesis, then reference */
} word;

/* The words of a sentence and its reference. */
typedef struct {
    ft_strbuf text[2];
    word *list;
    size_t count, capacity, hypothesis;
} sentence;

static bool add_words(sentence *s, const ft_strbuf *text)
{
    const char *at = ft_strbuf_text(text), *end = at + text->bytes, *start;
    for (size_t bytes; (bytes = ft_next_word(&at, end, &start)) > 0;) {
        if (s->count == s->capacity) {
            word *grown = ft_array_grow(s->list, &s->capacity, 64, sizeof *grown);
            if (grown == NULL)
                return false;
            s->list = grown;
        }
        s->list[s->count] = (word){ start, bytes, s->count };
        s->count++;
    }
    return true;
}

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    int sign = memcmp(x->text, y->text, ft_min_size(x->bytes, y->bytes));
    return sign != 0 ? sign : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Number equal words alike, and put the numbers back in the order of the text. */
static bool number_words(sentence *s, ft_symbols *hypothesis, ft_symbols *reference)
{
    uint32_t *number = ft_calloc(s->count, sizeof *number), next = 0;
    bool ok = number != NULL;
    if (ok && s->count > 0)
        qsort(s->list, s->count, sizeof *s->list, by_text);
    for (size_t i = 0; ok && i < s->count; i++) {
        next += i > 0 && by_text(&s->list[i - 1], &s->list[i]) != 0;
        number[s->list[i].index] = next;
    }
    for (size_t i = 0; ok && i < s->count; i++)
        ok = ft_symbols_append(i < s->hypothesis ? hypothesis : reference, number[i]);
    free(number);
    return ok && ft_symbols_sort(hypothesis) && ft_symbols_sort(reference);
}

static void add_counts(ft_bleu *bleu, const ft_symbols *hypothesis, const ft_symbols *reference)
{
    for (size_t order = 1; order <= FT_BLEU_ORDER; order++) {
        bleu->matches[order - 1] += ft_ngram_matches(hypothesis, reference, order);
        bleu->total[order - 1] += ft_ngram_count(hypothesis, order);
    }
    bleu->words += hypothesis->count;
    bleu->reference_words += reference->count;
}

bool ft_bleu_add(ft_bleu *bleu, const char *hypothesis, size_t bytes, const char *reference,
                 size_t reference_bytes)
{
    sentence s = { .list = NULL };
    ft_symbols symbols[2] = { 0 };
    bool ok = ft_bleu_split(hypothesis, bytes, &s.text[0]) &&
              ft_bleu_split(reference, reference_bytes, &s.text[1]) && add_words(&s, &s.text[0]);
    s.hypothesis = s.count;
    ok = ok && add_words(&s, &s.text[1]) && number_words(&s, &symbols[0], &symbols[1]);
    if (ok)
        add_counts(bleu, &symbols[0], &symbols[1]);
    for (int i = 0; i < 2; i++) {
        ft_strbuf_fini(&s.text[i]);
        ft_symbols_fini(&symbols[i]);
    }
    free(s.list);
    return ok;
}

/* The precision of an order; without a match, half of what the order before without one got. */
static double precision(const ft_bleu *bleu, size_t order, double *smoothing)
{
    if (bleu->matches[order] > 0)
        return (double) bleu->matches[order] / (double) bleu->total[order];
    *smoothing *= 2.0;
    return 1.0 / (*smoothing * (double) bleu->total[order]);
}

double ft_bleu_score(const ft_bleu *bleu)
{
    double logs = 0.0, smoothing = 1.0, words = (double) bleu->words,
           reference = (double) bleu->reference_words;
    bool matches = false;
    for (size_t i = 0; i < FT_BLEU_ORDER; i++)
        matches |= bleu->matches[i] > 0;
    if (!matches || bleu->total[FT_BLEU_ORDER - 1] == 0)
        return 0.0;
    for (size_t i = 0; i < FT_BLEU_ORDER; i++)
        logs += ft_math_log(precision(bleu, i, &smoothing));
    double brevity_penalty = words < reference ? ft_math_exp(1.0 - reference / words) : 1.0;
    return 100.0 * brevity_penalty * ft_math_exp(logs / FT_BLEU_ORDER);
}
