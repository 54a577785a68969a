/*
 * linear.cu - y = act(x . w^T + b): chooses the float, the faked, the int8 or the block form.
 *
 * Linears of one input (queries, keys and values) may run as one group: fewer launches, and a
 * wider product that fills the device better.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/quant.h"

#include <cuda_runtime_api.h>

/* Weights whose codes have a scale for each group. */
static bool is_groupwise(const ft_cuda_args *args)
{
    return args->weight[0]->blocks.scale != NULL;
}

/* Int8 or faked: the product of one linear. */
static ft_cuda_gemm_args gemm_args_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    bool quantizes = args->codes.data != NULL;
    const ft_cuda_view *y = quantizes ? &args->codes : &args->out;
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
    p.y_inv_scale[0] = quantizes ? ft_inverse_scale(args->codes.scale) : 0.0f;
    p.blas = args->blas;
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    return p;
}

static int run_fake_quantized(const ft_cuda_args *args)
{
    ft_cuda_gemm_args p = gemm_args_of(args);
    p.x = p.w = p.prepacked = NULL;
    return ft_cuda_gemm_fake_quantized(args->stream, &p, (const float *) args->in[0].data,
                                       (const float *) args->weight[0]->data);
}

static int run_int8(const ft_cuda_args *args)
{
    ft_cuda_gemm_args p = gemm_args_of(args);
    return ft_cuda_gemm_launch(ft_cuda_gemm_select(args->props, &p), args->props, args->stream, &p);
}

/* ---- Groups of int8 products ---------------------------------------------------------------- */

/* Whether `part` follows `p`, the ones before it: all parameters adjacent. */
static bool is_adjacent(const ft_cuda_gemm_args *p, const ft_cuda_gemm_args *next)
{
    bool bias = p->bias == NULL ? next->bias == NULL : next->bias == p->bias + p->n;
    return next->x == p->x && next->m == p->m && next->k == p->k && bias &&
           next->x_scale == p->x_scale && next->x_scales == p->x_scales &&
           next->activation == p->activation && next->y_dtype == p->y_dtype &&
           next->w_scale == p->w_scale + p->n && next->n % 32 == 0 &&
           next->prepacked == p->prepacked + ft_cuda_prepacked_bytes(p->n, p->k);
}

/* COL4_4R2_8C of several matrices cannot be put together, tiles can. */
static bool reads_prepacked(ft_cuda_gemm_kernel kernel)
{
    return kernel == FT_CUDA_GEMM_WGMMA || kernel == FT_CUDA_GEMM_GEMV;
}

/* One product with a part for each linear; false where it takes several. */
static bool fuse(const ft_cuda_args *const *args, int count, ft_cuda_gemm_args *out)
{
    ft_cuda_gemm_args first_args = gemm_args_of(args[0]), p = first_args;
    ft_cuda_gemm_kernel requested;
    if (first_args.prepacked == NULL || first_args.n % 32 != 0)
        return false;
    if (ft_cuda_gemm_requested(args[0]->props, &first_args, &requested) &&
        !reads_prepacked(requested))
        return false;
    for (int i = 1; i < count; i++) {
        ft_cuda_gemm_args next = gemm_args_of(args[i]);
        if (!is_adjacent(&p, &next))
            return false;
        p.width[i] = next.n;
        p.y[i] = next.y[0];
        p.y_inv_scale[i] = next.y_inv_scale[0];
        p.n += next.n;
    }
    p.n_outputs = count;
    p.w = NULL;
    *out = p;
    return reads_prepacked(ft_cuda_gemm_select(args[0]->props, &p));
}

static int run_int8_fused(const ft_cuda_args *const *args, int count)
{
    ft_cuda_gemm_args p;
    if (!fuse(args, count, &p))
        return (int) cudaErrorNotSupported;
    return ft_cuda_gemm_launch(ft_cuda_gemm_select(args[0]->props, &p), args[0]->props,
                               args[0]->stream, &p);
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_linear(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    if (args->in[0].rows == 0)
        return (int) cudaSuccess;
    if (is_groupwise(args))
        return ft_cuda_linear_groupwise(&args, 1);
    if (weight->dtype == FT_I8)
        return run_int8(args);
    return weight->scale != NULL ? run_fake_quantized(args) : ft_cuda_linear_float(&args, 1);
}

extern "C" int ft_cuda_linear_fused(const ft_cuda_args *const *args, int count)
{
    const ft_weight *weight = args[0]->weight[0];
    if (count == 1 || args[0]->in[0].rows == 0)
        return ft_cuda_linear(args[0]);
    if (is_groupwise(args[0]))
        return ft_cuda_linear_groupwise(args, count);
    for (int i = 0; i < count; i++) {
        const ft_weight *other = args[i]->weight[0];
        if (other->dtype != weight->dtype ||
            (weight->dtype != FT_I8 && other->rows != weight->rows) ||
            (other->scale == NULL) != (weight->scale == NULL))
            return (int) cudaErrorNotSupported;
    }
    if (count > FT_CUDA_MAX_FUSED || (weight->scale != NULL && weight->dtype != FT_I8))
        return (int) cudaErrorNotSupported;
    return weight->dtype == FT_I8 ? run_int8_fused(args, count) : ft_cuda_linear_float(args, count);
}

extern "C" int ft_cuda_norm_linear_gate(const ft_cuda_args *norm,
                                        const ft_cuda_args *const *linears, int count,
                                        const ft_cuda_args *gate)
{
    return is_groupwise(linears[0]) ? ft_cuda_norm_linear_gate_groupwise(norm, linears, count, gate)
                                    : (int) cudaErrorNotSupported;
}

extern "C" int ft_cuda_linear_explain(const ft_cuda_args *const *args, int count, char *text,
                                      size_t size)
{
    ft_cuda_gemm_args p;
    if (size > 0)
        text[0] = '\0';
    if (is_groupwise(args[0]))
        return ft_cuda_linear_groupwise_explain(args, count, text, size);
    if (args[0]->weight[0]->dtype != FT_I8)
        return 0;
    bool fused = count > 1 && fuse(args, count, &p);
    if (!fused)
        p = gemm_args_of(args[0]);
    ft_cuda_gemm_explain(args[0]->props, &p, text, size);
    return fused ? count : 1;
}

extern "C" size_t ft_cuda_linear_counters(const ft_plan *plan, const ft_op *op)
{
    return plan->weight[op->weight[0]].blocks.scale != NULL ? FT_CUDA_GROUPWISE_COUNTERS : 0;
}

extern "C" size_t ft_cuda_linear_scratch(const ft_cuda_device_props *props, const ft_plan *plan,
                                         const ft_op *op, size_t rows)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    if (weight->blocks.scale != NULL)
        return ft_cuda_linear_groupwise_scratch(props, &plan->value[op->in[0]], weight, rows);
    if (weight->dtype == FT_I8)
        return ft_cuda_gemm_scratch(props, rows, weight->rows, weight->cols);
    /* float weights are converted in blocks of a fixed size */
    return weight->scale != NULL ? 0
                                 : ft_cuda_linear_float_scratch(&plan->value[op->in[0]], weight);
}
