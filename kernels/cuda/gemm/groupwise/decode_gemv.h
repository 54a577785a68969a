/*
 * decode_gemv.h - products with weights in blocks for a row or two, and what a decoder's step has
 * before and behind them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_H

#include "kernels/cuda/gemm/groupwise/groupwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rms norm that makes x; the product's own x is not read.  Rows are of x's dtype. */
typedef struct ft_cuda_blocks_norm {
    const void *from, *residual; /* [1, k]; residual may be NULL */
    void *sum;                   /* their sum, which others read; NULL without a residual */
    const float *weight;         /* [k] */
    float eps, cols, inverse_cols;
} ft_cuda_blocks_norm;

/* The gate of two parts: act(first) * second, [m, rows] of y's dtype; their own y is not written.
 */
typedef struct ft_cuda_blocks_gate {
    void *y;
    ft_activation activation;
} ft_cuda_blocks_gate;

/* Whether there is a kernel with room for this product, and for what is before and behind it if not
 * NULL.
 */
bool ft_cuda_blocks_step_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p,
                               const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate);

/* How many rows it computes at a time. */
size_t ft_cuda_blocks_step_rows(void);

/* The bits are those of norm_block.cu, of any other way of the product, and of elementwise.cu. */
int ft_cuda_blocks_step(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                        const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
