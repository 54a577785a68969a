/*
 * linear.cu - y = act(x . w^T + b): dispatches to the float, fake-quantized, int8 or group-wise
 * GEMM.
 *
 * The int8 linears of a fusion group (query, key and value projections) may run as one GEMM: this
 * saves launches, and more columns fill the device better.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/quant.h"

#include <cuda_runtime_api.h>

/* Whether the weights are quantized group-wise. */
static bool is_groupwise(const ft_cuda_args *args)
{
    return args->weight[0]->groupwise.scale != NULL;
}

ft_cuda_gemm_args ft_cuda_linear_gemm_args(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    bool quantizes = args->quantized.data != NULL;
    const ft_view *y = quantizes ? &args->quantized : &args->out;
    ft_cuda_gemm_args p = {};
    p.m = args->in[0].rows;
    p.n = weight->rows;
    p.k = weight->cols;
    p.x = (const int8_t *) args->in[0].data;
    p.w = (const int8_t *) weight->data;
    p.prepacked = (const int8_t *) weight->prepacked;
    p.x_scale = args->in[0].scale;
    p.x_scales = args->in[0].scales;
    p.w_scale = weight->scale;
    p.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    p.activation = args->op->attr.activation;
    p.y_dtype = y->dtype;
    p.n_outputs = 1;
    p.width[0] = weight->rows;
    p.y[0] = y->data;
    p.y_inv_scale[0] = ft_inverse_scale(args->quantized.scale);
    p.blas = args->blas;
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    return p;
}

static int run_fake_quantized(const ft_cuda_args *args)
{
    ft_cuda_gemm_args p = ft_cuda_linear_gemm_args(args);
    p.x = p.w = p.prepacked = NULL;
    return ft_cuda_gemm_fake_quantized(args->stream, &p, (const float *) args->in[0].data,
                                       (const float *) args->weight[0]->data);
}

static int run_int8(const ft_cuda_args *args)
{
    ft_cuda_gemm_args p = ft_cuda_linear_gemm_args(args);
    return ft_cuda_gemm_launch(ft_cuda_gemm_select(args->props, &p), args->props, args->stream, &p);
}

/* ---- Groups of int8 GEMMs ------------------------------------------------------------------- */

/* Whether upload adds no alignment padding after the parameters of this GEMM. */
static bool is_unpadded(const ft_cuda_gemm_args *p)
{
    return p->n * sizeof *p->w_scale % FT_CUDA_WEIGHT_ALIGN == 0 &&
           ft_cuda_prepacked_bytes(p->n, p->k) % FT_CUDA_WEIGHT_ALIGN == 0;
}

/* Whether two GEMMs of one x differ only in weights, weight scales, biases and outputs. */
static bool same_shape(const ft_cuda_gemm_args *p, const ft_cuda_gemm_args *q)
{
    return q->k == p->k && q->activation == p->activation && q->y_dtype == p->y_dtype &&
           (q->bias == NULL) == (p->bias == NULL) && q->n % 32 == 0;
}

/* Several prepacked matrices form one matrix; several matrices in COL4_4R2_8C do not. */
static bool reads_prepacked(ft_cuda_gemm_kernel kernel)
{
    return kernel == FT_CUDA_GEMM_WGMMA || kernel == FT_CUDA_GEMM_GEMV;
}

bool ft_cuda_linear_fuse_int8(const ft_cuda_group *group, ft_cuda_gemm_args *out)
{
    const ft_cuda_args *const *args = group->linear;
    ft_cuda_gemm_args first_args = ft_cuda_linear_gemm_args(args[0]), p = first_args,
                      last = first_args;
    ft_cuda_gemm_kernel requested;
    if (!group->contiguous || first_args.prepacked == NULL || first_args.n % 32 != 0)
        return false;
    if (ft_cuda_gemm_requested(args[0]->props, &first_args, &requested) &&
        !reads_prepacked(requested))
        return false;
    for (int i = 1; i < group->linears; i++) {
        ft_cuda_gemm_args next = ft_cuda_linear_gemm_args(args[i]);
        if (!is_unpadded(&last) || !same_shape(&first_args, &next))
            return false;
        p.width[i] = next.n;
        p.y[i] = next.y[0];
        p.y_inv_scale[i] = next.y_inv_scale[0];
        p.n += next.n;
        last = next;
    }
    p.n_outputs = group->linears;
    p.w = NULL;
    *out = p;
    return reads_prepacked(ft_cuda_gemm_select(args[0]->props, &p));
}

/* Whether a group has several linears, all with int8 weights, and at least one row. */
static bool is_int8(const ft_cuda_group *group)
{
    bool int8 = group->linears > 1 && group->linears <= FT_CUDA_MAX_FUSED &&
                group->linear[0]->in[0].rows > 0;
    for (int i = 0; int8 && i < group->linears; i++)
        int8 = group->linear[i]->weight[0]->dtype == FT_I8;
    return int8;
}

extern "C" bool ft_cuda_group_int8_supports(const ft_cuda_group *group)
{
    ft_cuda_gemm_args p;
    return is_int8(group) && ft_cuda_linear_fuse_int8(group, &p);
}

extern "C" int ft_cuda_group_int8(const ft_cuda_group *group)
{
    const ft_cuda_args *first_args = group->linear[0];
    ft_cuda_gemm_args p;
    if (!is_int8(group) || !ft_cuda_linear_fuse_int8(group, &p))
        return (int) cudaErrorNotSupported;
    return ft_cuda_gemm_launch(ft_cuda_gemm_select(first_args->props, &p), first_args->props,
                               first_args->stream, &p);
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_linear(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    if (args->in[0].rows == 0)
        return (int) cudaSuccess;
    if (is_groupwise(args))
        return ft_cuda_linear_groupwise(args);
    if (weight->dtype == FT_I8)
        return run_int8(args);
    return weight->scale != NULL ? run_fake_quantized(args) : ft_cuda_linear_float(args);
}

extern "C" int ft_cuda_linear_explain(const ft_cuda_group *group, char *text, size_t size)
{
    const ft_cuda_args *first_args = group->linear[0];
    ft_cuda_gemm_args p;
    if (size > 0)
        text[0] = '\0';
    if (is_groupwise(first_args))
        return ft_cuda_linear_groupwise_explain(group, text, size);
    if (first_args->weight[0]->dtype != FT_I8)
        return 0;
    bool fused = group->linears > 1 && ft_cuda_linear_fuse_int8(group, &p);
    if (!fused)
        p = ft_cuda_linear_gemm_args(first_args);
    ft_cuda_gemm_explain(first_args->props, &p, text, size);
    return fused ? group->linears : 1;
}

/* cuBLAS computes float GEMMs of tokens, and cuBLASLt those INT8 GEMMs that need scratch. */
extern "C" ft_workspace ft_cuda_linear_workspace(const ft_cuda_device_props *props,
                                                 const ft_plan *plan, const ft_op *op,
                                                 const ft_limits *limits)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    const ft_value *x = &plan->value[op->in[0]];
    size_t rows = ft_limits_rows(limits, x->rows);
    ft_workspace need = {};
    if (weight->groupwise.scale != NULL) {
        need.scratch = ft_cuda_linear_groupwise_scratch(props, x, weight, rows);
        need.counters = FT_CUDA_GROUPWISE_COUNTERS;
        return need;
    }
    bool is_float = weight->scale == NULL;
    if (weight->dtype == FT_I8)
        need.scratch = ft_cuda_gemm_scratch(props, rows, weight->rows, weight->cols);
    else if (is_float) /* weights are converted in chunks of a fixed size */
        need.scratch = ft_cuda_linear_float_scratch(x, weight);
    need.blas = need.scratch > 0 || (is_float && !plan->batch_invariant && x->rows == FT_TOKENS);
    size_t decode =
        weight->dtype == FT_I8 && x->dynamic ? ft_cuda_linear_ffn_scratch(weight->cols) : 0;
    need.scratch = need.scratch > decode ? need.scratch : decode;
    return need;
}
