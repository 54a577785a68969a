/*
 * groupwise.h - random weights in blocks, and what they are worth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_GROUPWISE_H
#define FT_TESTS_LIB_OPS_GROUPWISE_H

#include "kernels/op.h"

/* How codes are made. */
typedef struct blocked_how {
    ft_dtype dtype; /* FT_U4 or FT_U8 */
    int32_t group;
    bool asymmetric; /* zeros of their own, else 8 or 128 */
    bool int8_activations;
} blocked_how;

/*
 * Codes, scales and zeros of all values; codes, scales and zeros of pads are 0.  *value receives
 * what the elements are.  Free it with free_blocked(), *value with free().
 */
ft_weight random_blocked(uint64_t seed, size_t rows, size_t cols, const blocked_how *how,
                         double **value);
void free_blocked(ft_weight *weight);

#endif
