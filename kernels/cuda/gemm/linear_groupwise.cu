/*
 * linear_groupwise.cu - linears whose weights are in blocks: from operations to products.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"
#include "kernels/cuda/gemm/linear.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static ft_cuda_blocks_part part_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_blocks_part part = {};
    part.rows = weight->rows;
    part.w = (const char *) weight->data;
    part.scale = weight->blocks.scale;
    part.zero = weight->blocks.zero;
    part.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    part.y = args->out.data;
    return part;
}

static ft_cuda_blocks product_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_blocks p = {};
    p.m = args->in[0].rows;
    p.k = weight->cols;
    p.x = args->in[0].data;
    p.x_dtype = args->in[0].dtype;
    p.y_dtype = args->out.dtype;
    p.bits = ft_blocks_bits(weight->dtype);
    p.group = weight->blocks.group;
    p.by_codes = weight->blocks.by_codes;
    p.activation = args->op->attr.activation;
    p.parts = 1;
    p.part[0] = part_of(args);
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    p.counters = args->counters;
    return p;
}

/* Whether these differ only in their weights and results. */
static bool are_alike(const ft_cuda_blocks *a, const ft_cuda_blocks *b)
{
    return a->x == b->x && a->m == b->m && a->k == b->k && a->y_dtype == b->y_dtype &&
           a->bits == b->bits && a->group == b->group && a->by_codes == b->by_codes &&
           a->activation == b->activation && (a->part[0].zero == NULL) == (b->part[0].zero == NULL);
}

/* One product with a part for each linear; false where it takes several. */
static bool join(const ft_cuda_args *const *args, int count, ft_cuda_blocks *out)
{
    *out = product_of(args[0]);
    for (int i = 1; i < count; i++) {
        ft_cuda_blocks other = {};
        if (args[i]->weight[0]->blocks.scale == NULL)
            return false;
        other = product_of(args[i]);
        if (!are_alike(out, &other))
            return false;
        out->part[i] = other.part[0];
    }
    out->parts = count;
    return true;
}

int ft_cuda_linear_blocks(const ft_cuda_args *const *args, int count)
{
    ft_cuda_blocks p;
    if (count > FT_CUDA_PARTS || !join(args, count, &p))
        return (int) cudaErrorNotSupported;
    return ft_cuda_blocks_run(args[0]->chip, args[0]->stream, &p);
}

/* ---- With a norm before them, or a gate behind --------------------------------------------- */

/* Values of a chain, and the linears', are of one dtype: false where one is not. */
static bool describe_norm(ft_cuda_blocks_norm *norm, const ft_cuda_args *args,
                          const ft_cuda_blocks *p)
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

static bool describe_gate(ft_cuda_blocks_gate *gate, const ft_cuda_args *args,
                          const ft_cuda_blocks *p)
{
    gate->y = args->out.data;
    gate->activation = args->op->attr.activation;
    return args->out.dtype == p->y_dtype;
}

int ft_cuda_linear_blocks_chain(const ft_cuda_args *norm, const ft_cuda_args *const *args,
                                int count, const ft_cuda_args *gate)
{
    ft_cuda_blocks p;
    ft_cuda_blocks_norm before = {};
    ft_cuda_blocks_gate behind = {};
    if (count > FT_CUDA_PARTS || !join(args, count, &p) ||
        (norm != NULL && !describe_norm(&before, norm, &p)) ||
        (gate != NULL && !describe_gate(&behind, gate, &p)))
        return (int) cudaErrorNotSupported;
    const ft_cuda_blocks_norm *first = norm != NULL ? &before : NULL;
    const ft_cuda_blocks_gate *last = gate != NULL ? &behind : NULL;
    if (!ft_cuda_blocks_step_takes(args[0]->chip, &p, first, last))
        return (int) cudaErrorNotSupported;
    return ft_cuda_blocks_step(args[0]->chip, args[0]->stream, &p, first, last);
}

int ft_cuda_linear_blocks_explain(const ft_cuda_args *const *args, int count, char *text,
                                  size_t size)
{
    ft_cuda_blocks p;
    bool joined = count > 1 && count <= FT_CUDA_PARTS && join(args, count, &p);
    if (!joined)
        p = product_of(args[0]);
    snprintf(text, size, "w%d %s", p.bits,
             ft_cuda_blocks_name(ft_cuda_blocks_choose(args[0]->chip, &p)));
    return joined ? count : 1;
}

/* Up to FT_CUDA_PARTS of such weights may be one product. */
size_t ft_cuda_linear_blocks_scratch(const ft_cuda_chip *chip, const ft_value *x,
                                     const ft_weight *weight, size_t rows)
{
    return ft_cuda_blocks_scratch(chip, rows, FT_CUDA_PARTS * weight->rows, weight->cols, x->dtype,
                                  weight->blocks.by_codes);
}
