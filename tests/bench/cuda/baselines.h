/*
 * baselines.h - baselines for the group-wise GEMM: dequantization to f16 in memory followed by a
 * library GEMM, and a plain kernel for int8 operands.
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

/* Dequantizes a weight in device memory, whose columns are a multiple of 32, to f16 [rows, cols].
 */
int dequantize(cudaStream_t stream, void *halves, const ft_weight *w);

/* Both operands are row-major int8; scales and zero points are per group. */
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
