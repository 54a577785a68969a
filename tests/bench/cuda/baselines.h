/*
 * baselines.h - what products with weights in blocks are compared with: weights that become
 * halves in memory before a library multiplies them, and a plain kernel for codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_CUDA_BASELINES_H
#define FT_TESTS_BENCH_CUDA_BASELINES_H

#include "kernels/op.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* [rows, cols] of f16 from a weight in device memory, whose columns are a multiple of 32. */
int dequantize(cudaStream_t stream, void *halves, const ft_weight *w);

/* Codes of both operands row by row; scales and zeros group by group. */
typedef struct scalar_product {
    int m, n, k, group;
    const int8_t *x, *w;
    const float *x_scale; /* [m, groups] */
    const float *w_scale; /* [groups, n] */
    const int8_t *zero;   /* [groups, n] */
    void *y;              /* f16 */
} scalar_product;

int multiply_scalars(cudaStream_t stream, const scalar_product *p);

#ifdef __cplusplus
}
#endif
#endif
