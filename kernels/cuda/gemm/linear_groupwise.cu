/*
 * linear_groupwise.cu - linears whose weights are in blocks: from operations to products.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"
#include "kernels/cuda/gemm/linear.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static ft_cuda_groupwise_linear linear_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_groupwise_linear linear = {};
    linear.rows = weight->rows;
    linear.w = (const char *) weight->data;
    linear.scale = weight->blocks.scale;
    linear.zero = weight->blocks.zero;
    linear.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    linear.y = args->out.data;
    return linear;
}

static ft_cuda_groupwise_args args_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_groupwise_args p = {};
    p.m = args->in[0].rows;
    p.k = weight->cols;
    p.x = args->in[0].data;
    p.x_dtype = args->in[0].dtype;
    p.y_dtype = args->out.dtype;
    p.bits = ft_groupwise_bits(weight->dtype);
    p.group = weight->blocks.group;
    p.int8_activations = weight->blocks.int8_activations;
    p.activation = args->op->attr.activation;
    p.n_linears = 1;
    p.linear[0] = linear_of(args);
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    p.counters = args->counters;
    return p;
}

/* Whether these differ only in their weights and results. */
static bool same_shape(const ft_cuda_groupwise_args *a, const ft_cuda_groupwise_args *b)
{
    return a->x == b->x && a->m == b->m && a->k == b->k && a->y_dtype == b->y_dtype &&
           a->bits == b->bits && a->group == b->group &&
           a->int8_activations == b->int8_activations && a->activation == b->activation &&
           (a->linear[0].zero == NULL) == (b->linear[0].zero == NULL);
}

/* One product with a part for each linear; false where it takes several. */
static bool fuse(const ft_cuda_args *const *args, int count, ft_cuda_groupwise_args *out)
{
    *out = args_of(args[0]);
    for (int i = 1; i < count; i++) {
        ft_cuda_groupwise_args other = {};
        if (args[i]->weight[0]->blocks.scale == NULL)
            return false;
        other = args_of(args[i]);
        if (!same_shape(out, &other))
            return false;
        out->linear[i] = other.linear[0];
    }
    out->n_linears = count;
    return true;
}

int ft_cuda_linear_groupwise(const ft_cuda_args *const *args, int count)
{
    ft_cuda_groupwise_args p;
    if (count > FT_CUDA_MAX_FUSED || !fuse(args, count, &p))
        return (int) cudaErrorNotSupported;
    return ft_cuda_groupwise_gemm(args[0]->props, args[0]->stream, &p);
}

/* ---- With a norm before them, or a gate behind --------------------------------------------- */

/* Values of a chain, and the linears', are of one dtype: false where one is not. */
static bool describe_norm(ft_cuda_groupwise_norm *norm, const ft_cuda_args *args,
                          const ft_cuda_groupwise_args *p)
{
    const ft_cuda_view *residual = &args->in[1], *sum = &args->second;
    norm->from = args->in[0].data;
    norm->residual = residual->data;
    norm->sum = sum->data;
    norm->weight = (const float *) args->weight[0]->data;
    norm->eps = args->op->attr.eps;
    norm->cols = (float) p->k;
    norm->inverse_cols = 1.0f / norm->cols;
    return args->op->attr.norm == FT_NORM_RMS && args->in[0].dtype == p->x_dtype &&
           args->out.dtype == p->x_dtype &&
           (residual->data == NULL || residual->dtype == p->x_dtype) &&
           (sum->data == NULL || sum->dtype == p->x_dtype);
}

static bool describe_gate(ft_cuda_groupwise_gate *gate, const ft_cuda_args *args,
                          const ft_cuda_groupwise_args *p)
{
    gate->y = args->out.data;
    gate->activation = args->op->attr.activation;
    return args->out.dtype == p->y_dtype;
}

int ft_cuda_norm_linear_gate_groupwise(const ft_cuda_args *norm, const ft_cuda_args *const *args,
                                       int count, const ft_cuda_args *gate)
{
    ft_cuda_groupwise_args p;
    ft_cuda_groupwise_norm before = {};
    ft_cuda_groupwise_gate after = {};
    if (count > FT_CUDA_MAX_FUSED || !fuse(args, count, &p) ||
        (norm != NULL && !describe_norm(&before, norm, &p)) ||
        (gate != NULL && !describe_gate(&after, gate, &p)))
        return (int) cudaErrorNotSupported;
    const ft_cuda_groupwise_norm *first = norm != NULL ? &before : NULL;
    const ft_cuda_groupwise_gate *last = gate != NULL ? &after : NULL;
    if (!ft_cuda_groupwise_decode_gemv_supports(args[0]->props, &p, first, last))
        return (int) cudaErrorNotSupported;
    return ft_cuda_groupwise_decode_gemv(args[0]->props, args[0]->stream, &p, first, last);
}

int ft_cuda_linear_groupwise_explain(const ft_cuda_args *const *args, int count, char *text,
                                     size_t size)
{
    ft_cuda_groupwise_args p;
    bool fused = count > 1 && count <= FT_CUDA_MAX_FUSED && fuse(args, count, &p);
    if (!fused)
        p = args_of(args[0]);
    snprintf(text, size, "w%d %s", p.bits,
             ft_cuda_groupwise_kernel_name(ft_cuda_groupwise_select(args[0]->props, &p)));
    return fused ? count : 1;
}

/* Up to FT_CUDA_MAX_FUSED of such weights may be one product. */
size_t ft_cuda_linear_groupwise_scratch(const ft_cuda_device_props *props, const ft_value *x,
                                        const ft_weight *weight, size_t rows)
{
    return ft_cuda_groupwise_scratch(props, rows, FT_CUDA_MAX_FUSED * weight->rows, weight->cols,
                                     x->dtype, weight->blocks.int8_activations);
}
