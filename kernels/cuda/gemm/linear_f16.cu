/*
 * linear_f16.cu - y = act(x . w^T + b) through the GEMMs of gemm/f16: batch-invariant ones, and
 * those for wgmma, alone or as fusion groups.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/decode_f16.h"
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

/* ---- Fused with a norm and a gate ----------------------------------------------------------- */

/* The GEMVs of a group's linears; false where they are not those of a decode step. */
static bool describe_gemvs(ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED], const ft_cuda_group *group)
{
    bool supported = group->linears <= FT_CUDA_MAX_FUSED;
    for (int i = 0; supported && i < group->linears; i++) {
        const ft_weight *weight = group->linear[i]->weight[0];
        p[i] = ft_cuda_float_gemm_args_of(group->linear[i]);
        supported = weight->dtype == p[i].x_dtype && weight->scale == NULL &&
                    weight->groupwise.scale == NULL && group->linear[i]->per != FT_SEQUENCES &&
                    ft_cuda_is_batch_invariant(group->linear[i]);
    }
    return supported;
}

/* False unless it is an RMS norm whose values all have the dtype of x. */
static bool describe_norm(ft_decode_f16_norm *norm, const ft_cuda_args *args, ft_dtype dtype)
{
    const ft_view *residual = &args->in[1], *sum = &args->second;
    norm->x = args->in[0].data;
    norm->residual = residual->data;
    norm->sum = sum->data;
    norm->weight = (const float *) args->weight[0]->data;
    norm->eps = args->op->attr.eps;
    return args->op->attr.norm == FT_NORM_RMS && args->in[0].dtype == dtype &&
           args->out.dtype == dtype && args->quantized.data == NULL &&
           (residual->data == NULL || residual->dtype == dtype) &&
           (sum->data == NULL || sum->dtype == dtype);
}

typedef struct decode_args {
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    ft_decode_f16_norm norm;
    ft_decode_f16_gate gate;
    const ft_decode_f16_gate *last; /* NULL: none */
} decode_args;

static bool describe_decode(decode_args *out, const ft_cuda_group *group)
{
    *out = {};
    if (group->norm == NULL || !describe_gemvs(out->p, group) ||
        !describe_norm(&out->norm, group->norm, out->p[0].x_dtype))
        return false;
    if (group->gate != NULL) {
        out->gate = { group->gate->out.data, group->gate->op->attr.activation };
        out->last = &out->gate;
        if (group->gate->out.dtype != out->p[0].y_dtype)
            return false;
    }
    return ft_cuda_decode_f16_supports(group->linear[0]->props, out->p, group->linears, &out->norm,
                                       out->last);
}

extern "C" bool ft_cuda_group_f16_decode_supports(const ft_cuda_group *group)
{
    decode_args args;
    return describe_decode(&args, group);
}

extern "C" int ft_cuda_group_f16_decode(const ft_cuda_group *group)
{
    decode_args args;
    if (!describe_decode(&args, group))
        return (int) cudaErrorNotSupported;
    return ft_cuda_decode_f16(group->linear[0]->props, group->linear[0]->stream, args.p,
                              group->linears, &args.norm, args.last);
}
