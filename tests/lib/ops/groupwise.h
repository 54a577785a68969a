/*
 * groupwise.h - random group-wise quantized weights, and their dequantized values; the definition
 * of int8 activations in plain C.
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

/*
 * Rounds dequantized elements to the type of x where CUDA kernels do
 * (kernels/cuda/gemm/groupwise/groupwise.cuh).
 */
void round_weights_for_gpu(double *value, size_t n, const blocked_how *how, ft_dtype x);

/* A group of int8 activations: elements are scale * (q - zero). */
typedef struct int8_group {
    float scale;
    int32_t zero;
} int8_group;

/* Quantizes x [n], one group, to q [n] as kernels/groupwise.h defines it, in plain C. */
int8_group quantize_group(int32_t *q, const float *x, size_t n);

/* Quantizes and dequantizes x [n] group by group; group 0: one group. */
void round_to_int8_groups(double *x, size_t n, int32_t group);

#endif
