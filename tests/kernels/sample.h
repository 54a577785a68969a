/*
 * sample.h - shared by the tests of sampling: rows of logits, random sampling options, and a simple
 * reference implementation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_KERNELS_SAMPLE_H
#define FT_TESTS_KERNELS_SAMPLE_H

#include "kernels/sampling.h"
#include "tests/lib/random.h"

/* Typical rows of logits, and extreme ones. */
typedef enum shape {
    NORMAL,    /* standard deviation 2 */
    PEAKED,    /* a few tokens have nearly all the probability */
    FLAT,      /* standard deviation 0.01 */
    WORDS,     /* Zipf's law: probability falls with a power of the rank */
    FEW,       /* few distinct values: many ties, also of both zeros */
    EQUAL,     /* all the same */
    HOLES,     /* normal, a third of it -inf */
    HUGE_ONES, /* up to the largest float, of both signs */
    TINY,      /* below the smallest normal float */
    SHAPES
} shape;

const char *shape_name(shape s);
void fill_logits(rng *r, float *logits, size_t n, shape s);

/* Random sampling options with this combination enabled, one bit each. */
enum { TOP_K = 1, TOP_P = 2, MIN_P = 4, PENALTIES = 8, NGRAM = 16, BANS = 32, RULES = 64 };
ft_sampling_params draw_choice(rng *r, unsigned rules, size_t vocabulary, int32_t known);

/* A history of repeated n-grams, and its token counts. */
void fill_history(rng *r, int32_t *history, int32_t known, size_t vocabulary, uint32_t *seen);

/* Logits after penalties and bans, written from the definitions of the options. */
void adjust_plainly(float *out, const float *logits, size_t n, const ft_sampling_params *sampling,
                    const int32_t *history, const uint32_t *seen);

/* The token that kernels/sampling.h specifies, by a full sort of the adjusted logits. */
int32_t sample_naive(const float *logits, size_t n, const ft_sampling_params *sampling,
                     const int32_t *history, const uint32_t *seen);

#endif
