/*
 * linear_int8_decode.cu - int8 linears of one row, fused with the operations around them:
 * translates operations to arguments of gemv_fused.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/gemv_fused.h"
#include "kernels/cuda/gemm/linear.h"

#include <cuda_runtime_api.h>

/* ---- Input ---------------------------------------------------------------------------------- */

static bool has_row_scales(const ft_view *view)
{
    return view->dtype == FT_I8 && view->scales != NULL;
}

/* False unless it is an RMS norm of F32 values whose only result is quantized with row scales. */
static bool describe_norm(ft_gemv_input *input, const ft_cuda_args *args)
{
    const ft_view *residual = &args->in[1], *sum = &args->second;
    input->source = FT_GEMV_NORM;
    input->x = args->in[0].data;
    input->residual = (const float *) residual->data;
    input->sum = (float *) sum->data;
    input->weight = (const float *) args->weight[0]->data;
    input->eps = args->op->attr.eps;
    return args->op->attr.norm == FT_NORM_RMS && args->weight[FT_WEIGHT_SMOOTHING] == NULL &&
           args->in[0].dtype == FT_F32 && args->out.data == NULL &&
           has_row_scales(&args->quantized) &&
           (residual->data == NULL || (residual->dtype == FT_F32 && residual->scale <= 0.0f)) &&
           (sum->data == NULL || sum->dtype == FT_F32);
}

static bool describe_values(ft_gemv_input *input, const ft_cuda_args *args)
{
    input->source = FT_GEMV_VALUES;
    input->x = args->in[0].data;
    return args->weight[FT_WEIGHT_SMOOTHING] == NULL && args->in[0].dtype == FT_F16 &&
           has_row_scales(&args->quantized);
}

/* ---- Linears -------------------------------------------------------------------------------- */

/* The GEMV of a group's linears; false where another kernel is faster or there are more rows. */
static bool describe_linears(ft_cuda_gemm_args *p, const ft_cuda_group *group)
{
    const ft_cuda_args *first = group->linear[0];
    if (first->in[0].rows != 1 || first->weight[0]->dtype != FT_I8 || first->quantized.data != NULL)
        return false;
    if (group->linears > 1 && !ft_cuda_linear_fuse_int8(group, p))
        return false;
    if (group->linears == 1)
        *p = ft_cuda_linear_gemm_args(first);
    return ft_cuda_gemm_select(first->props, p) == FT_CUDA_GEMM_GEMV;
}

/* A group without a gate as arguments of its kernel; false where it is not supported. */
static bool describe(ft_cuda_gemm_args *p, ft_gemv_input *input, const ft_cuda_group *group)
{
    *input = {};
    if (group->norm == NULL && group->quantize == NULL)
        return false;
    return describe_linears(p, group) &&
           (group->norm != NULL ? describe_norm(input, group->norm)
                                : describe_values(input, group->quantize)) &&
           ft_cuda_gemv_fused_supports(group->linear[0]->props, p, input, NULL);
}

extern "C" bool ft_cuda_group_int8_decode_supports(const ft_cuda_group *group)
{
    ft_cuda_gemm_args p;
    ft_gemv_input input;
    return describe(&p, &input, group);
}

extern "C" int ft_cuda_group_int8_decode(const ft_cuda_group *group)
{
    ft_cuda_gemm_args p;
    ft_gemv_input input;
    if (!describe(&p, &input, group))
        return (int) cudaErrorNotSupported;
    return ft_cuda_gemv_fused(group->linear[0]->props, group->linear[0]->stream, &p, &input, NULL);
}

/* ---- Feed-forward network ------------------------------------------------------------------- */

/* Both GEMVs; the second one quantizes the products of the first one's gate, in scratch. */
typedef struct ffn_args {
    ft_cuda_gemm_args p, down;
    ft_gemv_input norm, products;
    ft_gemv_gate gate;
} ffn_args;

size_t ft_cuda_linear_ffn_scratch(size_t k)
{
    return (FT_GEMV_MAX_PARTS + k) * sizeof(float);
}

static bool describe_ffn(ffn_args *out, const ft_cuda_group *group)
{
    *out = {};
    const ft_cuda_args *gate = group->gate, *down = group->down;
    if (group->norm == NULL || gate == NULL || down == NULL || !has_row_scales(&gate->quantized) ||
        gate->out.data != NULL || !describe_linears(&out->p, group) ||
        !describe_norm(&out->norm, group->norm))
        return false;
    const ft_cuda_device_props *props = down->props;
    const ft_cuda_group second = { .kind = FT_FUSION_LINEAR, .linear = { down }, .linears = 1 };
    float *scratch = (float *) down->scratch;
    out->gate.activation = gate->op->attr.activation;
    out->gate.amax = scratch;
    out->gate.products = scratch + FT_GEMV_MAX_PARTS;
    out->products.source = FT_GEMV_PRODUCTS;
    out->products.x = out->gate.products;
    out->products.amax = out->gate.amax;
    out->products.parts = ft_cuda_gemv_gate_parts(props, &out->p);
    return down->scratch_bytes >= ft_cuda_linear_ffn_scratch(down->weight[0]->cols) &&
           describe_linears(&out->down, &second) &&
           ft_cuda_gemv_fused_supports(props, &out->p, &out->norm, &out->gate) &&
           ft_cuda_gemv_fused_supports(props, &out->down, &out->products, NULL);
}

extern "C" bool ft_cuda_group_int8_ffn_supports(const ft_cuda_group *group)
{
    ffn_args args;
    return describe_ffn(&args, group);
}

extern "C" int ft_cuda_group_int8_ffn(const ft_cuda_group *group)
{
    ffn_args args;
    if (!describe_ffn(&args, group))
        return (int) cudaErrorNotSupported;
    const ft_cuda_device_props *props = group->down->props;
    void *stream = group->down->stream;
    int status = ft_cuda_gemv_fused(props, stream, &args.p, &args.norm, &args.gate);
    return status != 0 ? status
                       : ft_cuda_gemv_fused(props, stream, &args.down, &args.products, NULL);
}
