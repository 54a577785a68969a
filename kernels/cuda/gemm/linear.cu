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
static bool has_blocks(const ft_cuda_args *args)
{
    return args->weight[0]->blocks.scale != NULL;
}

/* Int8 or faked: the product of one linear. */
static ft_cuda_product product_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    bool to_codes = args->codes.data != NULL;
    const ft_cuda_view *y = to_codes ? &args->codes : &args->out;
    ft_cuda_product p = {};
    p.m = args->in[0].rows;
    p.n = weight->rows;
    p.k = weight->cols;
    p.x = (const int8_t *) args->in[0].data;
    p.w = (const int8_t *) weight->data;
    p.tiles = (const int8_t *) weight->tiles;
    p.x_scale = args->in[0].scale;
    p.x_scales = args->in[0].scales;
    p.w_scale = weight->scale;
    p.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    p.activation = args->op->attr.activation;
    p.y_dtype = y->dtype;
    p.parts = 1;
    p.width[0] = weight->rows;
    p.y[0] = y->data;
    p.y_inverse[0] = to_codes ? ft_inverse_scale(args->codes.scale) : 0.0f;
    p.blas = args->blas;
    p.scratch = args->scratch;
    p.scratch_bytes = args->scratch_bytes;
    return p;
}

static int run_faked(const ft_cuda_args *args)
{
    ft_cuda_product p = product_of(args);
    p.x = p.w = p.tiles = NULL;
    return ft_cuda_gemm_faked(args->stream, &p, (const float *) args->in[0].data,
                              (const float *) args->weight[0]->data);
}

static int run_int8(const ft_cuda_args *args)
{
    ft_cuda_product p = product_of(args);
    return ft_cuda_gemm_run(ft_cuda_gemm_choose(args->chip, &p), args->chip, args->stream, &p);
}

/* ---- Groups of int8 products ---------------------------------------------------------------- */

/* Whether `part` follows `p`, the ones before it: all parameters adjacent. */
static bool is_adjacent(const ft_cuda_product *p, const ft_cuda_product *part)
{
    bool bias = p->bias == NULL ? part->bias == NULL : part->bias == p->bias + p->n;
    return part->x == p->x && part->m == p->m && part->k == p->k && bias &&
           part->x_scale == p->x_scale && part->x_scales == p->x_scales &&
           part->activation == p->activation && part->y_dtype == p->y_dtype &&
           part->w_scale == p->w_scale + p->n && part->n % 32 == 0 &&
           part->tiles == p->tiles + ft_cuda_tiles_bytes(p->n, p->k);
}

/* COL4_4R2_8C of several matrices cannot be put together, tiles can. */
static bool reads_tiles(ft_cuda_gemm how)
{
    return how == FT_CUDA_GEMM_WGMMA || how == FT_CUDA_GEMM_STREAM;
}

/* One product with a part for each linear; false where it takes several. */
static bool join(const ft_cuda_args *const *args, int count, ft_cuda_product *out)
{
    ft_cuda_product first = product_of(args[0]), p = first;
    ft_cuda_gemm asked;
    if (first.tiles == NULL || first.n % 32 != 0)
        return false;
    if (ft_cuda_gemm_asked(args[0]->chip, &first, &asked) && !reads_tiles(asked))
        return false;
    for (int i = 1; i < count; i++) {
        ft_cuda_product part = product_of(args[i]);
        if (!is_adjacent(&p, &part))
            return false;
        p.width[i] = part.n;
        p.y[i] = part.y[0];
        p.y_inverse[i] = part.y_inverse[0];
        p.n += part.n;
    }
    p.parts = count;
    p.w = NULL;
    *out = p;
    return reads_tiles(ft_cuda_gemm_choose(args[0]->chip, &p));
}

static int run_int8_group(const ft_cuda_args *const *args, int count)
{
    ft_cuda_product p;
    if (!join(args, count, &p))
        return (int) cudaErrorNotSupported;
    return ft_cuda_gemm_run(ft_cuda_gemm_choose(args[0]->chip, &p), args[0]->chip, args[0]->stream,
                            &p);
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_linear(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    if (args->in[0].rows == 0)
        return (int) cudaSuccess;
    if (has_blocks(args))
        return ft_cuda_linear_blocks(&args, 1);
    if (weight->dtype == FT_I8)
        return run_int8(args);
    return weight->scale != NULL ? run_faked(args) : ft_cuda_linear_float(&args, 1);
}

extern "C" int ft_cuda_linear_group(const ft_cuda_args *const *args, int count)
{
    const ft_weight *weight = args[0]->weight[0];
    if (count == 1 || args[0]->in[0].rows == 0)
        return ft_cuda_linear(args[0]);
    if (has_blocks(args[0]))
        return ft_cuda_linear_blocks(args, count);
    for (int i = 0; i < count; i++) {
        const ft_weight *other = args[i]->weight[0];
        if (other->dtype != weight->dtype ||
            (weight->dtype != FT_I8 && other->rows != weight->rows) ||
            (other->scale == NULL) != (weight->scale == NULL))
            return (int) cudaErrorNotSupported;
    }
    if (count > FT_CUDA_PARTS || (weight->scale != NULL && weight->dtype != FT_I8))
        return (int) cudaErrorNotSupported;
    return weight->dtype == FT_I8 ? run_int8_group(args, count) : ft_cuda_linear_float(args, count);
}

extern "C" int ft_cuda_linear_chain(const ft_cuda_args *norm, const ft_cuda_args *const *linears,
                                    int count, const ft_cuda_args *gate)
{
    return has_blocks(linears[0]) ? ft_cuda_linear_blocks_chain(norm, linears, count, gate)
                                  : (int) cudaErrorNotSupported;
}

extern "C" int ft_cuda_linear_explain(const ft_cuda_args *const *args, int count, char *text,
                                      size_t size)
{
    ft_cuda_product p;
    if (size > 0)
        text[0] = '\0';
    if (has_blocks(args[0]))
        return ft_cuda_linear_blocks_explain(args, count, text, size);
    if (args[0]->weight[0]->dtype != FT_I8)
        return 0;
    bool joined = count > 1 && join(args, count, &p);
    if (!joined)
        p = product_of(args[0]);
    ft_cuda_gemm_explain(args[0]->chip, &p, text, size);
    return joined ? count : 1;
}

extern "C" size_t ft_cuda_linear_counters(const ft_plan *plan, const ft_op *op)
{
    return plan->weight[op->weight[0]].blocks.scale != NULL ? FT_CUDA_BLOCKS_COUNTERS : 0;
}

extern "C" size_t ft_cuda_linear_scratch(const ft_cuda_chip *chip, const ft_plan *plan,
                                         const ft_op *op, size_t rows)
{
    const ft_weight *weight = &plan->weight[op->weight[0]];
    if (weight->blocks.scale != NULL)
        return ft_cuda_linear_blocks_scratch(chip, &plan->value[op->in[0]], weight, rows);
    if (weight->dtype == FT_I8)
        return ft_cuda_gemm_scratch(chip, rows, weight->rows, weight->cols);
    /* float weights are converted in blocks of a fixed size */
    return weight->scale != NULL ? 0
                                 : ft_cuda_linear_float_scratch(&plan->value[op->in[0]], weight);
}
