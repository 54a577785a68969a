/*
 * linear.h - inside linear: the forms of y = act(x . w^T + b).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_LINEAR_H
#define FT_KERNELS_CUDA_GEMM_LINEAR_H

#include "kernels/cuda/fused_kernels.h"

/*
 * Batch-invariant where the plan is; of sequences by ft_cuda_linear_gemv(); else through cuBLAS,
 * then bias and activation.  There x and y are of one dtype, or y is F32; the weights are of x's
 * dtype, or x is F32 and they are converted in scratch, a block of rows at a time.
 */
int ft_cuda_linear_float(const ft_cuda_args *args);

/* With group-wise weights. */
int ft_cuda_linear_groupwise(const ft_cuda_args *args);
int ft_cuda_linear_groupwise_explain(const ft_cuda_group *group, char *text, size_t size);
size_t ft_cuda_linear_groupwise_scratch(const ft_cuda_device_props *props, const ft_value *x,
                                        const ft_weight *weight, size_t rows);

/* Scratch bytes of the float form. */
size_t ft_cuda_linear_float_scratch(const ft_value *x, const ft_weight *weight);

/* The same for one product of few rows, of any dtypes, without the library and without scratch. */
int ft_cuda_linear_gemv(const ft_cuda_args *args);

/* By ft_cuda_float_gemm_batch_invariant(). */
int ft_cuda_linear_batch_invariant(const ft_cuda_args *args);

/*
 * Whether the linears of a group are GEMMs of floats, of one shape and one dtype of weights, and
 * there are rows for them.
 */
bool ft_cuda_is_float_group(const ft_cuda_group *group);

#endif
