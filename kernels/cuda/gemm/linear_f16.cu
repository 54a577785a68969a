/*
 * linear_f16.cu - y = act(x . w^T + b) through the GEMMs of gemm/f16: batch-invariant ones, and
 * those for wgmma, alone or as fusion groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/gemm/linear.h"

#include <cuda_runtime_api.h>

ft_cuda_float_gemm_args ft_cuda_float_gemm_args_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_float_gemm_args p = {};
    p.m = args->out.rows;
    p.n = args->out.cols;
    p.k = args->in[0].cols;
    p.x = args->in[0].data;
    p.w = weight->data;
    p.x_dtype = args->in[0].dtype;
    p.w_dtype = weight->dtype;
    p.y_dtype = args->out.dtype;
    p.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    p.activation = args->op->attr.activation;
    p.y = args->out.data;
    return p;
}

int ft_cuda_linear_batch_invariant(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = ft_cuda_float_gemm_args_of(args);
    return ft_cuda_float_gemm_batch_invariant(args->props, args->stream, &p);
}

bool ft_cuda_linear_wgmma_supports(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = ft_cuda_float_gemm_args_of(args);
    return ft_cuda_f16_wgmma_supports(args->props, &p);
}

int ft_cuda_linear_wgmma(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = ft_cuda_float_gemm_args_of(args);
    return ft_cuda_f16_wgmma_fastest(args->props, args->stream, &p, 1);
}

/* ---- Groups --------------------------------------------------------------------------------- */

/* The GEMMs of a group; false where no single kernel supports all of them. */
static bool describe(ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED], const ft_cuda_group *group)
{
    bool supported = ft_cuda_is_float_group(group) && group->linear[0]->per != FT_SEQUENCES;
    for (int i = 0; supported && i < group->linears; i++) {
        p[i] = ft_cuda_float_gemm_args_of(group->linear[i]);
        supported = p[i].y_dtype == p[0].y_dtype && p[i].activation == p[0].activation &&
                    ft_cuda_f16_wgmma_supports(group->linear[i]->props, &p[i]);
    }
    return supported;
}

extern "C" bool ft_cuda_group_f16_supports(const ft_cuda_group *group)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    return describe(p, group);
}

extern "C" int ft_cuda_group_f16(const ft_cuda_group *group)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    const ft_cuda_args *first = group->linear[0];
    if (!describe(p, group))
        return (int) cudaErrorNotSupported;
    return (ft_cuda_is_batch_invariant(first) ? ft_cuda_f16_wgmma : ft_cuda_f16_wgmma_fastest)(
        first->props, first->stream, p, group->linears);
}
