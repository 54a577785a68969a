/*
 * linear_groupwise.cu - linears with group-wise weights: translates operations to GEMM arguments.
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
    linear.scale = weight->groupwise.scale;
    linear.zero = weight->groupwise.zero;
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
    p.group = weight->groupwise.group;
    p.int8_activations = weight->groupwise.int8_activations;
    p.activation = args->op->attr.activation;
    p.n_linears = 1;
    p.linear[0] = linear_of(args);
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    p.counters = args->counters;
    return p;
}

/* Whether two linears of one x differ only in their weights and outputs. */
static bool same_shape(const ft_cuda_groupwise_args *a, const ft_cuda_groupwise_args *b)
{
    return a->k == b->k && a->y_dtype == b->y_dtype && a->bits == b->bits && a->group == b->group &&
           a->int8_activations == b->int8_activations && a->activation == b->activation &&
           (a->linear[0].zero == NULL) == (b->linear[0].zero == NULL);
}

/* One GEMM with an output for each linear; false where the linears need several GEMMs. */
static bool fuse(const ft_cuda_group *group, ft_cuda_groupwise_args *out)
{
    if (group->linears > FT_CUDA_MAX_FUSED || group->linear[0]->weight[0]->groupwise.scale == NULL)
        return false;
    *out = args_of(group->linear[0]);
    for (int i = 1; i < group->linears; i++) {
        if (group->linear[i]->weight[0]->groupwise.scale == NULL)
            return false;
        ft_cuda_groupwise_args other = args_of(group->linear[i]);
        if (!same_shape(out, &other))
            return false;
        out->linear[i] = other.linear[0];
    }
    out->n_linears = group->linears;
    return true;
}

int ft_cuda_linear_groupwise(const ft_cuda_args *args)
{
    ft_cuda_groupwise_args p = args_of(args);
    return ft_cuda_groupwise_gemm(args->props, args->stream, &p);
}

/* Whether a group has several linears and at least one row, and a kernel supports all linears. */
static bool describe(ft_cuda_groupwise_args *p, const ft_cuda_group *group)
{
    return group->linears > 1 && group->linear[0]->in[0].rows > 0 && fuse(group, p) &&
           ft_cuda_blocks_supports(group->linear[0]->props, p);
}

extern "C" bool ft_cuda_group_groupwise_supports(const ft_cuda_group *group)
{
    ft_cuda_groupwise_args p;
    return describe(&p, group);
}

extern "C" int ft_cuda_group_groupwise(const ft_cuda_group *group)
{
    ft_cuda_groupwise_args p;
    return describe(&p, group)
               ? ft_cuda_groupwise_gemm(group->linear[0]->props, group->linear[0]->stream, &p)
               : (int) cudaErrorNotSupported;
}

/* ---- Fused with a norm or a gate ----------------------------------------------------------- */

/* False unless it is an RMS norm whose values all have the dtype of x. */
static bool describe_norm(ft_cuda_groupwise_norm *norm, const ft_cuda_args *args,
                          const ft_cuda_groupwise_args *p)
{
    const ft_view *residual = &args->in[1], *sum = &args->second;
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

/* A group with a norm, a gate, or both, as the arguments of its kernel. */
typedef struct decode_args {
    ft_cuda_groupwise_args p;
    ft_cuda_groupwise_norm norm;
    ft_cuda_groupwise_gate gate;
    const ft_cuda_groupwise_norm *first; /* NULL: none */
    const ft_cuda_groupwise_gate *last;
} decode_args;

/* False where the kernel does not support the group. */
static bool describe_decode(decode_args *out, const ft_cuda_group *group)
{
    *out = {};
    if ((group->norm == NULL && group->gate == NULL) || !fuse(group, &out->p) ||
        (group->norm != NULL && !describe_norm(&out->norm, group->norm, &out->p)) ||
        (group->gate != NULL && !describe_gate(&out->gate, group->gate, &out->p)))
        return false;
    out->first = group->norm != NULL ? &out->norm : NULL;
    out->last = group->gate != NULL ? &out->gate : NULL;
    return ft_cuda_groupwise_decode_gemv_supports(group->linear[0]->props, &out->p, out->first,
                                                  out->last);
}

extern "C" bool ft_cuda_group_decode_supports(const ft_cuda_group *group)
{
    decode_args args;
    return describe_decode(&args, group);
}

extern "C" int ft_cuda_group_decode(const ft_cuda_group *group)
{
    decode_args args;
    if (!describe_decode(&args, group))
        return (int) cudaErrorNotSupported;
    return ft_cuda_groupwise_decode_gemv(group->linear[0]->props, group->linear[0]->stream, &args.p,
                                         args.first, args.last);
}

int ft_cuda_linear_groupwise_explain(const ft_cuda_group *group, char *text, size_t size)
{
    const ft_cuda_args *first = group->linear[0];
    ft_cuda_groupwise_args p;
    bool fused = group->linears > 1 && fuse(group, &p);
    if (!fused)
        p = args_of(first);
    snprintf(text, size, "w%d %s", p.bits,
             ft_cuda_groupwise_kernel_name(ft_cuda_groupwise_select(first->props, &p)));
    return fused ? group->linears : 1;
}

/* Up to FT_CUDA_MAX_FUSED such weights may run as one GEMM. */
size_t ft_cuda_linear_groupwise_scratch(const ft_cuda_device_props *props, const ft_value *x,
                                        const ft_weight *weight, size_t rows)
{
    return ft_cuda_groupwise_scratch(props, rows, FT_CUDA_MAX_FUSED * weight->rows, weight->cols,
                                     x->dtype, weight->groupwise.int8_activations);
}
