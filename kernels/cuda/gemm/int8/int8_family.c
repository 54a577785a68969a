/*
 * int8_family.c - the INT8 GEMM kernels and their tiles as candidates of the tuner.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/gemm_variant.h"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "kernels/layout.h"

#include <cuda_runtime_api.h>

static bool computes(const ft_gemm_problem *p)
{
    return p->x == FT_I8 && p->w == FT_I8;
}

static bool describe(int candidate, char name[FT_GEMM_KERNEL_NAME])
{
    ft_cuda_gemm_variant variant;
    if (!ft_cuda_gemm_variant_at(candidate, &variant))
        return false;
    ft_cuda_gemm_variant_name(&variant, name, FT_GEMM_KERNEL_NAME);
    return true;
}

/* ---- Operands ----------------------------------------------------------------------------- */

static void measure(const ft_cuda_device_props *props, ft_cuda_gemm_operands *out)
{
    const ft_gemm_problem *p = out->problem;
    out->bytes[FT_CUDA_GEMM_X] = p->m * p->k;
    out->bytes[FT_CUDA_GEMM_W] = ft_layout_bytes(FT_COL4_4R2_8C, p->n, p->k);
    out->bytes[FT_CUDA_GEMM_PREPACKED] = props->has_wgmma ? ft_cuda_prepacked_bytes(p->n, p->k) : 0;
    out->bytes[FT_CUDA_GEMM_SCALE] = out->bytes[FT_CUDA_GEMM_BIAS] = p->n * sizeof(float);
    out->bytes[FT_CUDA_GEMM_Y] = p->m * p->n * ft_dtype_size(p->y);
    out->bytes[FT_CUDA_GEMM_SCRATCH] = ft_cuda_gemm_scratch(props, p->m, p->n, p->k);
}

static int prepare(void *stream, const ft_cuda_gemm_operands *o)
{
    const ft_gemm_problem *p = o->problem;
    return o->data[FT_CUDA_GEMM_PREPACKED] == NULL
               ? 0
               : ft_cuda_prepack(stream, o->data[FT_CUDA_GEMM_PREPACKED], o->data[FT_CUDA_GEMM_W],
                                 p->n, p->k);
}

/* Several matrices are one only in the prepacked layout. */
static ft_cuda_gemm_args args_of(const ft_cuda_gemm_operands *o)
{
    const ft_gemm_problem *p = o->problem;
    ft_cuda_gemm_args args = { .m = p->m,
                               .n = p->n,
                               .k = p->k,
                               .x = o->data[FT_CUDA_GEMM_X],
                               .w = p->linears > 1 ? NULL : o->data[FT_CUDA_GEMM_W],
                               .prepacked = o->data[FT_CUDA_GEMM_PREPACKED],
                               .x_scale = 1.0f / 32.0f,
                               .w_scale = o->data[FT_CUDA_GEMM_SCALE],
                               .bias = o->data[FT_CUDA_GEMM_BIAS],
                               .activation = p->activation,
                               .y_dtype = p->y,
                               .n_outputs = 1,
                               .width = { p->n },
                               .y = { o->data[FT_CUDA_GEMM_Y] },
                               .y_inv_scale = { p->y == FT_I8 ? 32.0f : 0.0f },
                               .blas = o->blas,
                               .scratch = o->data[FT_CUDA_GEMM_SCRATCH],
                               .scratch_bytes = o->bytes[FT_CUDA_GEMM_SCRATCH] };
    return args;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static int tile_of(ft_cuda_gemm_kernel kernel, const ft_cuda_device_props *props,
                   const ft_cuda_gemm_args *p)
{
    return kernel == FT_CUDA_GEMM_MMA     ? ft_cuda_gemm_mma_select_tile(props, p)
           : kernel == FT_CUDA_GEMM_WGMMA ? (int) ft_cuda_wgmma_select(props, p)
                                          : -1;
}

static int select_variant(const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    ft_cuda_device_props untuned = *props;
    untuned.num_tuned = 0;
    ft_cuda_gemm_args args = args_of(o);
    ft_cuda_gemm_kernel kernel = ft_cuda_gemm_select(&untuned, &args);
    int tile = tile_of(kernel, props, &args);
    ft_cuda_gemm_variant variant;
    for (int i = 0; ft_cuda_gemm_variant_at(i, &variant); i++)
        if (variant.kernel == kernel && variant.tile == tile &&
            ft_cuda_gemm_variant_supports(&variant, props, &args))
            return i;
    return -1;
}

/* The reference kernel is never the fastest one. */
static bool fits(int candidate, const ft_cuda_device_props *props, const ft_cuda_gemm_operands *o)
{
    ft_cuda_gemm_args args = args_of(o);
    ft_cuda_gemm_variant variant;
    return ft_cuda_gemm_variant_at(candidate, &variant) && variant.kernel != FT_CUDA_GEMM_SIMT &&
           ft_cuda_gemm_variant_supports(&variant, props, &args);
}

static int launch(int candidate, const ft_cuda_device_props *props, void *stream,
                  const ft_cuda_gemm_operands *o)
{
    ft_cuda_gemm_args args = args_of(o);
    ft_cuda_gemm_variant variant;
    return ft_cuda_gemm_variant_at(candidate, &variant)
               ? ft_cuda_gemm_variant_launch(&variant, props, stream, &args)
               : (int) cudaErrorInvalidValue;
}

const ft_cuda_gemm_family ft_cuda_int8_family = { .computes = computes,
                                                  .describe = describe,
                                                  .measure = measure,
                                                  .prepare = prepare,
                                                  .select = select_variant,
                                                  .fits = fits,
                                                  .launch = launch };
