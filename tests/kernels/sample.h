/*
 * sample.h - what the tests of choosing share: rows of logits, random choices, and a slow, plain
 * implementation of the same rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_KERNELS_SAMPLE_H
#define FT_TESTS_KERNELS_SAMPLE_H

#include "kernels/sampling.h"
#include "tests/lib/random.h"

/* Rows as models make them, and as no model should. */
typedef enum shape {
    NORMAL,    /* standard deviation 2 */
    PEAKED,    /* a few tokens have nearly all */
    FLAT,      /* standard deviation 0.01 */
    WORDS,     /* likelihood falls with a power of the rank, as those of words do */
    FEW,       /* few different values: many ties, of both zeros too */
    EQUAL,     /* all the same */
    HOLES,     /* normal, a third of it -inf */
    HUGE_ONES, /* up to the largest float, of both signs */
    TINY,      /* below the smallest normal float */
    SHAPES
} shape;

const char *shape_name(shape s);
void fill_logits(rng *r, float *logits, size_t n, shape s);

/* A choice with this combination of rules, one bit each; numbers are drawn. */
enum { TOP_K = 1, TOP_P = 2, MIN_P = 4, PENALTIES = 8, NGRAM = 16, BANS = 32, RULES = 64 };
ft_sampling_params draw_choice(rng *r, unsigned rules, size_t vocabulary, int32_t known);

/* Tokens that repeat each other, so that n-grams occur again; and what was seen of them. */
void fill_history(rng *r, int32_t *history, int32_t known, size_t vocabulary, uint32_t *seen);

/* Logits after penalties and bans, written from the description of the rules. */
void adjust_plainly(float *out, const float *logits, size_t n, const ft_sampling_params *choice,
                    const int32_t *history, const uint32_t *seen);

/* The token by the rules of kernels/sampling.h, by a full sort of the adjusted logits. */
int32_t choose_plainly(const float *logits, size_t n, const ft_sampling_params *choice,
                       const int32_t *history, const uint32_t *seen);

#endif
