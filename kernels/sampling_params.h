/*
 * sampling_params.h - how the next token of a sequence is chosen from its logits.
 *
 * In this order: penalties and bans change logits; temperature divides them; top-k, top-p and
 * min-p keep the most likely tokens; one is drawn by a number that only the request's seed and the
 * token's place decide.  Zeros mean: the most likely token, and nothing else is done.
 *
 * Tokens stand in one order throughout: the more likely before the less, of equal ones the smaller
 * id before the larger.  kernels/sampling.h has the arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SAMPLING_PARAMS_H
#define FT_KERNELS_SAMPLING_PARAMS_H

#include "runtime/ft.h"

enum { FT_MAX_BANNED_IDS = 16 };

/* All numbers are finite; nothing here is checked again by the kernels. */
typedef struct ft_sampling_params {
    uint64_t seed;
    uint32_t step;     /* tokens chosen for this request before: the counter of Philox */
    int32_t slot;      /* where the sequence's history is; -1: the row is nobody's */
    int32_t n_tokens;  /* tokens in that history: prompt and chosen ones */
    float temperature; /* 0: the most likely token */
    int32_t top_k;     /* keep exactly that many; 0: all */
    float top_p;       /* keep the fewest that have this share of what top-k kept; 0 or 1: all */
    float min_p;       /* keep those at least so likely, relative to the likeliest; 0: all */
    float repetition_penalty; /* divides positive and multiplies negative logits of known tokens; 0:
                                 no */
    float presence_penalty;   /* subtracted from logits of tokens that were chosen before */
    float frequency_penalty;  /* subtracted once for each time a token was chosen before */
    int32_t no_repeat_ngram;  /* no run of that many tokens occurs twice; 0: no such ban */
    int32_t bans; /* of ban[]: ids that must not be chosen now (ends, before the minimum) */
    int32_t ban[FT_MAX_BANNED_IDS];
} ft_sampling_params;

#endif
