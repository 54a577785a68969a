/*
 * linear.h - internal to LINEAR: float and group-wise implementations of y = act(x . w^T + b).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_LINEAR_H
#define FT_KERNELS_CUDA_GEMM_LINEAR_H

#include "kernels/cuda/fused_kernels.h"

/*
 * Float GEMM: batch-invariant where the plan is; ft_cuda_linear_gemv() where x has one row per
 * sequence; ft_cuda_linear_wgmma() where it can; else cuBLAS, followed by bias and activation.  For
 * cuBLAS, x and y have the same dtype, or y is F32; the weights have the dtype of x, or x is F32
 * and the weights are converted to F32 in scratch, a chunk of rows at a time.
 */
int ft_cuda_linear_float(const ft_cuda_args *args);

/* The GEMM of one int8 or fake-quantized linear. */
ft_cuda_gemm_args ft_cuda_linear_gemm_args(const ft_cuda_args *args);

/* One int8 GEMM with an output for each linear; false where the linears need several GEMMs. */
bool ft_cuda_linear_fuse_int8(const ft_cuda_group *group, ft_cuda_gemm_args *out);

/* Scratch bytes of ft_cuda_group_int8_ffn() for the linear of a gate with `k` columns. */
size_t ft_cuda_linear_ffn_scratch(size_t k);

/* GEMM of group-wise weights, its description for users, and its scratch bytes. */
int ft_cuda_linear_groupwise(const ft_cuda_args *args);
int ft_cuda_linear_groupwise_explain(const ft_cuda_group *group, char *text, size_t size);
size_t ft_cuda_linear_groupwise_scratch(const ft_cuda_device_props *props, const ft_value *x,
                                        const ft_weight *weight, size_t rows);

/* Scratch bytes of ft_cuda_linear_float(). */
size_t ft_cuda_linear_float_scratch(const ft_value *x, const ft_weight *weight);

/* GEMM of few rows, of any float dtypes, without cuBLAS and without scratch. */
int ft_cuda_linear_gemv(const ft_cuda_args *args);

/* The arguments of a linear as those of a float GEMM. */
ft_cuda_float_gemm_args ft_cuda_float_gemm_args_of(const ft_cuda_args *args);

/* Whether results may not depend on the other rows of the batch. */
static inline bool ft_cuda_is_batch_invariant(const ft_cuda_args *args)
{
    return args->batch != NULL && args->batch->batch_invariant;
}

/* Calls ft_cuda_float_gemm_batch_invariant(). */
int ft_cuda_linear_batch_invariant(const ft_cuda_args *args);

/* The fastest wgmma kernel for x and weights of the same 16-bit dtype. */
bool ft_cuda_linear_wgmma_supports(const ft_cuda_args *args);
int ft_cuda_linear_wgmma(const ft_cuda_args *args);

/*
 * Whether a group has several linears, all float GEMMs of the same shape and weight dtype, and at
 * least one row.
 */
bool ft_cuda_is_float_group(const ft_cuda_group *group);

#endif
