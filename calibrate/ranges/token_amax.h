/*
 * token_amax.h - the largest magnitude of each token of a point: are there massive tokens?
 *
 * A static range must cover single tokens that are many times larger than all others, which leaves
 * few quantized values for the others. Where such tokens exist, one scale per token helps. In
 * decoders they are the first tokens of a text, or a few delimiters.
 *
 * Sources: Sun et al. 2024, "Massive Activations in Large Language Models"; Chen et al. 2024,
 * "PrefixQuant".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_RANGES_TOKEN_AMAX_H
#define FT_CALIBRATE_RANGES_TOKEN_AMAX_H

#include "runtime/error.h"

enum {
    FT_MASSIVE_RATIO = 8, /* massive: more than this times the median */
    FT_FIRST_TOKENS = 4,  /* positions that count as first ones */
};

/* One magnitude per token, in the order of the samples. Zero-initialized: none. */
typedef struct ft_token_amax {
    float *amax;    /* [count], owned */
    bool *is_first; /* [count]: one of the first tokens of its sample, owned */
    size_t count, capacity;
} ft_token_amax;

/*
 * Appends the tokens of one sample.
 *
 *   x  [rows, cols], the value of the point, in the order of the text
 *
 * FT_ENOMEM; FT_EFORMAT, with `name`, for NaN and infinities.
 */
FT_MUST_USE ft_status ft_token_amax_add(ft_token_amax *tokens, const char *name, const float *x,
                                        size_t rows, size_t cols, ft_error *err);
void ft_token_amax_fini(ft_token_amax *tokens);

typedef struct ft_token_summary {
    double median, most;  /* of the magnitudes of all tokens */
    double ratio;         /* most / median; 1 if there are no tokens, or only zeros */
    size_t massive;       /* tokens above FT_MASSIVE_RATIO * median */
    size_t massive_first; /* those of them among the first tokens of their sample */
} ft_token_summary;

/* The median of an even number of tokens is the lower of the middle two. FT_ENOMEM. */
FT_MUST_USE ft_status ft_token_amax_summarize(ft_token_summary *out, const ft_token_amax *tokens,
                                              ft_error *err);

#endif
