/*
 * gemm_f32.h - float matrix product with its epilogue; a row does not depend on its neighbours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_F32_GEMM_F32_H
#define FT_KERNELS_CPU_GEMM_F32_GEMM_F32_H

#include "kernels/activation.h"
#include "kernels/cpu/base/isa.h"

/*
 * y = activation(x . w^T + bias).  Each sum over k has the order that f32.h describes; the bias
 * is added to it, and y is rounded once more where it is a half.  So every instruction set, every
 * number of threads and every number of rows gives a row the same bytes.
 *
 *   x  [m, k]  of x_dtype, rows x_stride elements apart
 *   w  [n, k]  of w_dtype, row-major, only read
 *   y  [m, n]  of y_dtype, rows y_stride elements apart
 *
 * Dtypes are F32, F16 or BF16.  All memory is the caller's.  m, n, k are at least 1.
 */
typedef struct ft_gemm_float {
    ft_isa isa; /* from ft_cpu_isa() */
    int threads;
    size_t m, n, k;
    ft_dtype x_dtype, w_dtype, y_dtype;
    const void *x;
    size_t x_stride;
    const void *w;
    const float *bias; /* [n], or NULL for none */
    ft_activation activation;
    void *y;
    size_t y_stride;
    void *scratch; /* 64-byte aligned; contents do not matter */
    size_t scratch_bytes;
} ft_gemm_float;

/*
 * Scratch that is enough for every product of at most m rows of `x_dtype` and depth k with at most
 * that many threads, on every instruction set; SIZE_MAX when that does not fit a size_t.
 */
size_t ft_gemm_float_scratch(ft_dtype x_dtype, size_t m, size_t k, int threads);

void ft_gemm_float_run(const ft_gemm_float *gemm);

#endif
