/*
 * linear.h - inside linear: the forms of y = act(x . w^T + b).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_LINEAR_H
#define FT_KERNELS_CUDA_GEMM_LINEAR_H

#include "kernels/cuda/cuda.h"

/*
 * `count` products of one x through cuBLAS, then bias and activation.  x and y are of one dtype, or
 * y is F32; the weights are of x's dtype, or x is F32 and they are converted in scratch, a block of
 * rows at a time.  More than one product needs equal shapes and activations, weights of x's dtype
 * and equal distances between weights and between results: cudaErrorNotSupported if not.
 */
int ft_cuda_linear_float(const ft_cuda_args *const *args, int count);

/*
 * `count` products of one x with weights in blocks as one: cudaErrorNotSupported where they differ
 * in more than weights and results.
 */
int ft_cuda_linear_groupwise(const ft_cuda_args *const *args, int count);
/* ft_cuda_norm_linear_gate(), fused_kernels.h, of such linears. */
int ft_cuda_norm_linear_gate_groupwise(const ft_cuda_args *norm, const ft_cuda_args *const *args,
                                       int count, const ft_cuda_args *gate);
int ft_cuda_linear_groupwise_explain(const ft_cuda_args *const *args, int count, char *text,
                                     size_t size);
size_t ft_cuda_linear_groupwise_scratch(const ft_cuda_device_props *props, const ft_value *x,
                                        const ft_weight *weight, size_t rows);

/* Scratch bytes of the float form. */
size_t ft_cuda_linear_float_scratch(const ft_value *x, const ft_weight *weight);

/* The same for one product of few rows, of any dtypes, without the library and without scratch. */
int ft_cuda_linear_gemv(const ft_cuda_args *args);

/*
 * By ft_cuda_float_batch_invariant(); several products of one x and one shape by one launch:
 * cudaErrorNotSupported where they cannot be.
 */
int ft_cuda_linear_batch_invariant(const ft_cuda_args *const *args, int count);

#endif
