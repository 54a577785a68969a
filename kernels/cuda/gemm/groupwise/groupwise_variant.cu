/*
 * groupwise_variant.cu - kernels for a group-wise GEMM with a tile of them, by name, and those that
 * a tuning file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv.h"
#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_tiles.h"
#include "kernels/cuda/gemm/groupwise/groupwise_variant.h"

/* The plain kernel adds in another order, so it is none of them. */
static const struct {
    ft_cuda_groupwise_variant variant;
    const char *name;
} variants[] = {
    { { FT_CUDA_GROUPWISE_DECODE_GEMV, 0 }, "decode_gemv" },
    { { FT_CUDA_GROUPWISE_GEMV, 0 }, "gemv" },
    { { FT_CUDA_GROUPWISE_MMA, FT_CUDA_GROUPWISE_MMA_M16 }, "mma m16" },
    { { FT_CUDA_GROUPWISE_MMA, FT_CUDA_GROUPWISE_MMA_M32 }, "mma m32" },
    { { FT_CUDA_GROUPWISE_MMA, FT_CUDA_GROUPWISE_MMA_M64 }, "mma m64" },
    { { FT_CUDA_GROUPWISE_MMA, FT_CUDA_GROUPWISE_MMA_M128 }, "mma m128" },
    { { FT_CUDA_GROUPWISE_WGMMA, FT_CUDA_GROUPWISE_WGMMA_N192_M16 }, "wgmma n192 m16" },
    { { FT_CUDA_GROUPWISE_WGMMA, FT_CUDA_GROUPWISE_WGMMA_N192_M32 }, "wgmma n192 m32" },
    { { FT_CUDA_GROUPWISE_WGMMA, FT_CUDA_GROUPWISE_WGMMA_N192_M64 }, "wgmma n192 m64" },
    { { FT_CUDA_GROUPWISE_WGMMA, FT_CUDA_GROUPWISE_WGMMA_N128_M64 }, "wgmma n128 m64" },
    { { FT_CUDA_GROUPWISE_WGMMA, FT_CUDA_GROUPWISE_WGMMA_N128_M128 }, "wgmma n128 m128" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_RESIDENT }, "int8 resident" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_SMALL_M }, "int8 small_m" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_N32_M16 }, "int8 n32 m16" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_N128_M32 }, "int8 n128 m32" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_N128_M128 }, "int8 n128 m128" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M32 }, "int8 wgmma n64 m32" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_WGMMA_N64_M64 }, "int8 wgmma n64 m64" },
    { { FT_CUDA_GROUPWISE_INT8, FT_CUDA_GROUPWISE_INT8_WGMMA_N128_M128 }, "int8 wgmma n128 m128" },
};

const ft_cuda_groupwise_variant *ft_cuda_groupwise_variant_at(int index)
{
    return index < (int) (sizeof variants / sizeof variants[0]) ? &variants[index].variant : NULL;
}

const char *ft_cuda_groupwise_variant_name(int index)
{
    return variants[index].name;
}

/* ---- Support ------------------------------------------------------------------------------ */

static bool supports_float(ft_cuda_groupwise_kernel kernel, const ft_cuda_device_props *props,
                           const ft_cuda_groupwise_args *p)
{
    switch (kernel) {
    case FT_CUDA_GROUPWISE_DECODE_GEMV:
        return ft_cuda_groupwise_decode_gemv_supports(props, p, NULL, NULL);
    case FT_CUDA_GROUPWISE_GEMV:
        return ft_cuda_groupwise_gemv_supports(props, p);
    case FT_CUDA_GROUPWISE_MMA:
        return ft_cuda_groupwise_mma_supports(props, p);
    case FT_CUDA_GROUPWISE_WGMMA:
        return ft_cuda_groupwise_wgmma_supports(props, p);
    case FT_CUDA_GROUPWISE_SIMT:
        return ft_cuda_groupwise_simt_supports(props, p);
    case FT_CUDA_GROUPWISE_INT8:
    case FT_CUDA_GROUPWISE_KERNELS:
        break;
    }
    return false;
}

bool ft_cuda_groupwise_supports(ft_cuda_groupwise_kernel kernel, const ft_cuda_device_props *props,
                                const ft_cuda_groupwise_args *p)
{
    return p->int8_activations
               ? kernel == FT_CUDA_GROUPWISE_INT8 && ft_cuda_groupwise_int8_supports(props, p)
               : supports_float(kernel, props, p);
}

static bool has_tile(const ft_cuda_groupwise_variant *v, const ft_cuda_device_props *props,
                     const ft_cuda_groupwise_args *p)
{
    switch (v->kernel) {
    case FT_CUDA_GROUPWISE_MMA:
        return ft_cuda_groupwise_mma_tile_fits((ft_cuda_groupwise_mma_tile) v->tile, props, p);
    case FT_CUDA_GROUPWISE_WGMMA:
        return ft_cuda_groupwise_wgmma_tile_fits((ft_cuda_groupwise_wgmma_tile) v->tile, p);
    case FT_CUDA_GROUPWISE_INT8:
        return ft_cuda_groupwise_int8_tile_fits((ft_cuda_groupwise_int8_tile) v->tile, props, p);
    default:
        return true;
    }
}

bool ft_cuda_groupwise_variant_supports(const ft_cuda_groupwise_variant *v,
                                        const ft_cuda_device_props *props,
                                        const ft_cuda_groupwise_args *p)
{
    return ft_cuda_groupwise_supports(v->kernel, props, p) && has_tile(v, props, p);
}

/* ---- Launch ------------------------------------------------------------------------------- */

ft_cuda_groupwise_variant ft_cuda_groupwise_variant_of(ft_cuda_groupwise_kernel kernel,
                                                       const ft_cuda_device_props *props,
                                                       const ft_cuda_groupwise_args *p)
{
    int tile = kernel == FT_CUDA_GROUPWISE_MMA     ? (int) ft_cuda_groupwise_mma_select(props, p)
               : kernel == FT_CUDA_GROUPWISE_WGMMA ? (int) ft_cuda_groupwise_wgmma_select(props, p)
               : kernel == FT_CUDA_GROUPWISE_INT8  ? (int) ft_cuda_groupwise_int8_select(props, p)
                                                   : 0;
    return { kernel, tile };
}

static int launch(const ft_cuda_groupwise_variant *v, const ft_cuda_device_props *props,
                  void *stream, const ft_cuda_groupwise_args *p)
{
    switch (v->kernel) {
    case FT_CUDA_GROUPWISE_DECODE_GEMV:
        return ft_cuda_groupwise_decode_gemv(props, stream, p, NULL, NULL);
    case FT_CUDA_GROUPWISE_GEMV:
        return ft_cuda_groupwise_gemv(props, stream, p);
    case FT_CUDA_GROUPWISE_MMA:
        return ft_cuda_groupwise_mma((ft_cuda_groupwise_mma_tile) v->tile, props, stream, p);
    case FT_CUDA_GROUPWISE_WGMMA:
        return ft_cuda_groupwise_wgmma((ft_cuda_groupwise_wgmma_tile) v->tile, props, stream, p);
    case FT_CUDA_GROUPWISE_SIMT:
        return ft_cuda_groupwise_simt(props, stream, p);
    case FT_CUDA_GROUPWISE_INT8:
        return ft_cuda_groupwise_int8((ft_cuda_groupwise_int8_tile) v->tile, props, stream, p);
    case FT_CUDA_GROUPWISE_KERNELS:
        break;
    }
    return (int) cudaErrorInvalidValue;
}

int ft_cuda_groupwise_variant_launch(const ft_cuda_groupwise_variant *v,
                                     const ft_cuda_device_props *props, void *stream,
                                     const ft_cuda_groupwise_args *p)
{
    if (!ft_cuda_groupwise_variant_supports(v, props, p))
        return (int) cudaErrorNotSupported;
    return p->m == 0 ? (int) cudaSuccess : launch(v, props, stream, p);
}

/* ---- Tuned GEMMs -------------------------------------------------------------------------- */

static ft_gemm_problem problem_of(const ft_cuda_groupwise_args *p)
{
    ft_gemm_problem problem = {};
    problem.m = p->m;
    for (int i = 0; i < p->n_linears; i++)
        problem.n += p->linear[i].rows;
    problem.k = p->k;
    problem.x = p->x_dtype;
    problem.w = p->bits == 4 ? FT_U4 : FT_U8;
    problem.y = p->y_dtype;
    problem.group = p->group;
    problem.zero_points = p->linear[0].zero != NULL;
    problem.int8_activations = p->int8_activations;
    problem.activation = p->activation;
    problem.linears = p->n_linears;
    return problem;
}

const ft_cuda_groupwise_variant *ft_cuda_groupwise_variant_tuned(const ft_cuda_device_props *props,
                                                                 const ft_cuda_groupwise_args *p)
{
    ft_gemm_problem problem = problem_of(p);
    int candidate = ft_cuda_gemm_tuned(props, &problem);
    const ft_cuda_groupwise_variant *v =
        candidate < 0 ? NULL : ft_cuda_groupwise_variant_at(candidate);
    return v != NULL && ft_cuda_groupwise_variant_supports(v, props, p) ? v : NULL;
}
