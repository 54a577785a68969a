/*
 * groupwise.h - random group-wise quantized weights, and their dequantized values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_GROUPWISE_H
#define FT_TESTS_LIB_OPS_GROUPWISE_H

#include "kernels/op.h"

/* The quantization scheme. */
typedef struct blocked_how {
    ft_dtype dtype; /* FT_U4 or FT_U8 */
    int32_t group;
    bool asymmetric; /* explicit zero points, else 8 or 128 */
    bool int8_activations;
} blocked_how;

/*
 * Random quantized values, scales and zero points; those of padding are 0.  *value receives the
 * dequantized elements.  Free it with free_blocked(), *value with free().
 */
ft_weight random_blocked(uint64_t seed, size_t rows, size_t cols, const blocked_how *how,
                         double **value);
void free_blocked(ft_weight *weight);

#endif
