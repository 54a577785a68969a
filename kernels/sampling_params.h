/*
 * sampling_params.h - parameters of sampling the next token of a sequence from its logits.
 *
 * The steps are: apply penalties and bans to logits; divide by temperature; keep the most probable
 * tokens by top-k, top-p and min-p; sample one by a random number that depends only on the seed of
 * the request and the position of the token.  All zeros: greedy search without penalties.
 *
 * Tokens are sorted by probability, highest first; of equal tokens the smaller id is first.
 * kernels/sampling.h has the arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SAMPLING_PARAMS_H
#define FT_KERNELS_SAMPLING_PARAMS_H

#include "runtime/ft.h"

enum { FT_MAX_BANNED_IDS = 16 };

/* All numbers are finite; kernels do not check them again. */
typedef struct ft_sampling_params {
    uint64_t seed;
    uint32_t step;     /* tokens sampled for this request so far: the Philox counter */
    int32_t slot;      /* slot of the sequence; -1: a padding row */
    int32_t n_tokens;  /* tokens in its history: prompt and sampled tokens */
    float temperature; /* 0: greedy */
    int32_t top_k;     /* keep exactly this many tokens; 0: all */
    float top_p; /* keep the fewest tokens with this share of the top-k probability; 0 or 1: all */
    float min_p; /* minimum probability relative to the most probable token; 0: all */
    float repetition_penalty; /* divides positive and multiplies negative logits of tokens in the
                                 history; 0: off */
    float presence_penalty;   /* subtracted from logits of tokens that were sampled before */
    float frequency_penalty;  /* subtracted for each time a token was sampled before */
    int32_t no_repeat_ngram;  /* no n-gram of this size occurs twice; 0: off */
    int32_t n_banned; /* length of banned[]: ids that are banned now, e.g. EOS before the minimum
                         length */
    int32_t banned[FT_MAX_BANNED_IDS];
} ft_sampling_params;

#endif
