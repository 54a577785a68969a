/*
 * f16_family.cu - the f16 and bf16 GEMM kernels and their tiles as candidates of the tuner.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/f16_variant.h"

#include <cuda_runtime_api.h>

static bool computes(const ft_gemm_problem *p)
{
    return p->w == p->x && (p->x == FT_F16 || p->x == FT_BF16) && p->linears >= 1 &&
           p->linears <= FT_CUDA_MAX_FUSED && p->n % (size_t) p->linears == 0;
}

static bool describe(int candidate, char name[FT_GEMM_KERNEL_NAME])
{
    ft_cuda_f16_variant variant;
    if (!ft_cuda_f16_variant_at(candidate, 1, &variant))
        return false;
    ft_cuda_f16_variant_name(&variant, name, FT_GEMM_KERNEL_NAME);
    return true;
}

/* ---- Operands ----------------------------------------------------------------------------- */

static void measure(const ft_cuda_device_props *props, ft_cuda_gemm_operands *out)
{
    const ft_gemm_problem *p = out->problem;
    (void) props;
    out->bytes[FT_CUDA_GEMM_X] = p->m * p->k * ft_dtype_size(p->x);
    out->bytes[FT_CUDA_GEMM_W] = p->n * p->k * ft_dtype_size(p->w);
    out->bytes[FT_CUDA_GEMM_BIAS] = p->n * sizeof(float);
    out->bytes[FT_CUDA_GEMM_Y] = p->m * p->n * ft_dtype_size(p->y);
}

/* The linears of a problem, all of one size. */
typedef struct linears {
    ft_cuda_float_gemm_args args[FT_CUDA_MAX_FUSED];
    ft_cuda_f16_gemms gemms;
} linears;

static const ft_cuda_f16_gemms *linears_init(linears *out, const ft_cuda_gemm_operands *o)
{
    const ft_gemm_problem *p = o->problem;
    size_t count = (size_t) p->linears, n = p->n / count;
    for (size_t i = 0; i < count; i++) {
        ft_cuda_float_gemm_args *args = &out->args[i];
        *args = {};
        args->m = p->m;
        args->n = n;
        args->k = p->k;
        args->x = o->data[FT_CUDA_GEMM_X];
        args->w = (const char *) o->data[FT_CUDA_GEMM_W] + i * n * p->k * ft_dtype_size(p->w);
        args->x_dtype = p->x;
        args->w_dtype = p->w;
        args->y_dtype = p->y;
        args->bias = (const float *) o->data[FT_CUDA_GEMM_BIAS] + i * n;
        args->activation = p->activation;
        args->y = (char *) o->data[FT_CUDA_GEMM_Y] + i * p->m * n * ft_dtype_size(p->y);
    }
    out->gemms = { out->args, p->linears, p->batch_invariant };
    return &out->gemms;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static int select_variant(const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    linears all;
    ft_cuda_f16_variant selected, v;
    if (!ft_cuda_f16_select(props, linears_init(&all, o), &selected))
        return -1;
    for (int i = 0; ft_cuda_f16_variant_at(i, selected.splits, &v); i++)
        if (ft_cuda_f16_variant_same(&v, &selected))
            return i;
    return -1;
}

static bool fits(int candidate, const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    linears all;
    const ft_cuda_f16_gemms *g = linears_init(&all, o);
    ft_cuda_f16_variant selected, v;
    return ft_cuda_f16_select(props, g, &selected) &&
           ft_cuda_f16_variant_at(candidate, selected.splits, &v) &&
           ft_cuda_f16_variant_fits(&v, &selected, props, g);
}

static int launch(int candidate, const ft_cuda_device_props *props, void *stream,
                  const ft_cuda_gemm_operands *o)
{
    linears all;
    const ft_cuda_f16_gemms *g = linears_init(&all, o);
    ft_cuda_f16_variant selected, v;
    return ft_cuda_f16_select(props, g, &selected) &&
                   ft_cuda_f16_variant_at(candidate, selected.splits, &v)
               ? ft_cuda_f16_variant_launch(&v, props, stream, g)
               : (int) cudaErrorNotSupported;
}

extern "C" const ft_cuda_gemm_family ft_cuda_f16_family = { computes,       describe, measure, NULL,
                                                            select_variant, fits,     launch };
