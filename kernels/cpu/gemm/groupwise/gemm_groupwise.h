/*
 * gemm_groupwise.h - GEMM with group-wise quantized weights and a fused epilogue.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GEMM_GROUPWISE_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GEMM_GROUPWISE_H

#include "kernels/activation.h"
#include "kernels/groupwise.h"
#include "kernels/cpu/base/isa.h"

/*
 * y = activation(x . w^T + bias). Each sum over k is the one that groupwise.h defines; the bias is
 * added to it, and y is rounded once more if it is F16 or BF16. So every instruction set, every
 * number of threads and every number of rows gives a row the same bytes.
 *
 *   x  [m, k]  of x_dtype, rows x_stride elements apart
 *   w  [n, k]  4-bit or 8-bit values in FT_PANEL32, 64-byte aligned, read-only
 *   y  [m, n]  of y_dtype, rows y_stride elements apart
 *
 * Dtypes are F32, F16 or BF16. The caller owns all memory. m, n, k are at least 1.
 */
typedef struct ft_gemm_groupwise {
    ft_isa isa; /* from ft_cpu_isa() */
    int threads;
    size_t m, n, k;
    ft_dtype x_dtype, y_dtype;
    const void *x;
    size_t x_stride;
    const void *w;
    int bits;
    ft_groupwise groupwise;
    const float *bias; /* [n], or NULL */
    ft_activation activation;
    void *y;
    size_t y_stride;
    void *scratch; /* 64-byte aligned, uninitialized */
    size_t scratch_bytes;
} ft_gemm_groupwise;

/*
 * Scratch bytes that suffice for every GEMM with at most m rows, this k, these quantization
 * parameters and at most that many threads, on every instruction set; SIZE_MAX if that overflows a
 * size_t.
 */
size_t ft_gemm_groupwise_scratch(const ft_groupwise *groupwise, size_t m, size_t k, int threads);

void ft_gemm_groupwise_run(const ft_gemm_groupwise *gemm);

#endif
