/*
 * gemm_variant.c - kernels for an INT8 GEMM with a tile of them, by name, and those that a tuning
 * file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/int8/gemm_variant.h"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

/* ---- Names -------------------------------------------------------------------------------- */

static int tile_count(ft_cuda_gemm_kernel kernel)
{
    return kernel == FT_CUDA_GEMM_MMA     ? ft_cuda_gemm_mma_tile_count()
           : kernel == FT_CUDA_GEMM_WGMMA ? FT_CUDA_WGMMA_TILE_COUNT
                                          : 0;
}

bool ft_cuda_gemm_variant_at(int index, ft_cuda_gemm_variant *out)
{
    for (int kernel = 0; kernel < FT_CUDA_GEMM_KERNELS; kernel++) {
        int tiles = tile_count((ft_cuda_gemm_kernel) kernel), variants = tiles > 0 ? tiles : 1;
        *out = (ft_cuda_gemm_variant){ (ft_cuda_gemm_kernel) kernel, tiles > 0 ? index : -1 };
        if (index < variants)
            return true;
        index -= variants;
    }
    return false;
}

void ft_cuda_gemm_variant_name(const ft_cuda_gemm_variant *v, char *text, size_t size)
{
    const char *kernel = ft_cuda_gemm_name(v->kernel);
    int tokens, columns;
    if (v->tile >= 0 && v->kernel == FT_CUDA_GEMM_WGMMA) {
        snprintf(text, size, "%s %s", kernel,
                 ft_cuda_wgmma_tile_name((ft_cuda_wgmma_tile) v->tile));
    } else if (v->tile >= 0) {
        ft_cuda_gemm_mma_tile_size(v->tile, &tokens, &columns);
        snprintf(text, size, "%s %dx%d", kernel, tokens, columns);
    } else {
        snprintf(text, size, "%s", kernel);
    }
}

/* ---- Launch ------------------------------------------------------------------------------- */

bool ft_cuda_gemm_variant_supports(const ft_cuda_gemm_variant *v, const ft_cuda_device_props *props,
                                   const ft_cuda_gemm_args *p)
{
    if (!ft_cuda_gemm_supports(v->kernel, props, p))
        return false;
    if (v->tile < 0)
        return true;
    return v->kernel == FT_CUDA_GEMM_WGMMA
               ? ft_cuda_wgmma_tile_supports((ft_cuda_wgmma_tile) v->tile, p)
               : ft_cuda_gemm_mma_tile_fits(v->tile, props);
}

int ft_cuda_gemm_variant_launch(const ft_cuda_gemm_variant *v, const ft_cuda_device_props *props,
                                void *stream, const ft_cuda_gemm_args *p)
{
    if (!ft_cuda_gemm_args_valid(p))
        return (int) cudaErrorInvalidValue;
    if (!ft_cuda_gemm_variant_supports(v, props, p))
        return (int) cudaErrorNotSupported;
    if (v->tile < 0)
        return ft_cuda_gemm_launch_kernel(v->kernel, props, stream, p);
    return v->kernel == FT_CUDA_GEMM_WGMMA
               ? ft_cuda_wgmma_launch((ft_cuda_wgmma_tile) v->tile, props, stream, p)
               : ft_cuda_gemm_mma_launch_tile(v->tile, props, stream, p);
}

/* ---- Tuned GEMMs -------------------------------------------------------------------------- */

static ft_gemm_problem problem_of(const ft_cuda_gemm_args *p)
{
    return (ft_gemm_problem){ .m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .x = FT_I8,
                              .w = FT_I8,
                              .y = p->y_dtype,
                              .activation = p->activation,
                              .linears = p->n_outputs };
}

bool ft_cuda_gemm_variant_tuned(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p,
                                ft_cuda_gemm_variant *out)
{
    ft_gemm_problem problem = problem_of(p);
    int candidate = ft_cuda_gemm_tuned(props, &problem);
    return candidate >= 0 && ft_cuda_gemm_variant_at(candidate, out) &&
           ft_cuda_gemm_variant_supports(out, props, p);
}
