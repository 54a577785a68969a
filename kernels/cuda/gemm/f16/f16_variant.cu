/*
 * f16_variant.cu - kernels for an f16 or bf16 GEMM with a tile of them, by name, and those that a
 * tuning file has chosen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/f16_variant.h"
#include "kernels/cuda/gemm/f16/gemm_f16.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/* ---- Variants ----------------------------------------------------------------------------- */

static const ft_cuda_f16_tile tiles[] = {
    { 1, 8, true, 1 },    { 1, 8, true, 2 },   { 1, 16, true, 1 },  { 1, 16, true, 2 },
    { 1, 32, true, 1 },   { 1, 32, true, 2 },  { 1, 64, true, 1 },  { 1, 64, true, 2 },
    { 1, 96, true, 1 },   { 1, 96, true, 2 },  { 1, 128, true, 1 }, { 1, 128, true, 2 },
    { 2, 64, true, 1 },   { 2, 64, true, 2 },  { 2, 128, true, 1 }, { 2, 128, true, 2 },
    { 2, 256, true, 1 },  { 2, 256, true, 2 }, { 1, 64, false, 1 }, { 1, 128, false, 1 },
    { 2, 128, false, 1 },
};

enum { SMALL_M_TILES = sizeof tiles / sizeof tiles[0] };

bool ft_cuda_f16_variant_at(int index, int splits, ft_cuda_f16_variant *out)
{
    static const struct {
        ft_cuda_f16_kernel kernel;
        int count;
    } kernels[] = {
        { FT_CUDA_F16_SMALL_M, SMALL_M_TILES },
        { FT_CUDA_F16_LARGE_M, FT_CUDA_F16_LARGE_M_TILES },
        { FT_CUDA_F16_SPLIT_K, FT_CUDA_F16_SPLIT_K_TILES },
        { FT_CUDA_F16_GEMV, 1 },
        { FT_CUDA_F16_MMA, FT_CUDA_F16_MMA_TILES },
    };
    for (const auto &k : kernels) {
        if (index < k.count) {
            *out = { k.kernel, index, {}, splits };
            if (k.kernel == FT_CUDA_F16_SMALL_M)
                *out = { k.kernel, 0, tiles[index], splits };
            return true;
        }
        index -= k.count;
    }
    return false;
}

static void name_small_m(const ft_cuda_f16_tile *tile, char *text, size_t size)
{
    snprintf(text, size, "wgmma n%d m%d%s%s", 64 * tile->warpgroups, tile->rows,
             tile->cluster_split_k ? "" : " serial", tile->blocks_per_sm == 2 ? " x2" : "");
}

void ft_cuda_f16_variant_name(const ft_cuda_f16_variant *v, char *text, size_t size)
{
    switch (v->kernel) {
    case FT_CUDA_F16_SMALL_M:
        name_small_m(&v->tile, text, size);
        break;
    case FT_CUDA_F16_LARGE_M:
        snprintf(text, size, "wgmma %s", ft_cuda_f16_large_m_name(v->index));
        break;
    case FT_CUDA_F16_SPLIT_K:
        snprintf(text, size, "wgmma split-k %s", ft_cuda_f16_split_k_name(v->index));
        break;
    case FT_CUDA_F16_GEMV:
        snprintf(text, size, "gemv");
        break;
    case FT_CUDA_F16_MMA:
        snprintf(text, size, "mma m%d", v->index == FT_CUDA_F16_MMA_M64 ? 64 : 128);
        break;
    }
}

bool ft_cuda_f16_variant_same(const ft_cuda_f16_variant *a, const ft_cuda_f16_variant *b)
{
    const ft_cuda_f16_tile *s = &a->tile, *t = &b->tile;
    if (a->kernel != b->kernel || a->splits != b->splits)
        return false;
    return a->kernel == FT_CUDA_F16_SMALL_M
               ? s->warpgroups == t->warpgroups && s->rows == t->rows &&
                     s->blocks_per_sm == t->blocks_per_sm &&
                     (s->cluster_split_k == t->cluster_split_k || a->splits == 1)
               : a->index == b->index;
}

/* ---- Support ------------------------------------------------------------------------------ */

static bool is_mma(ft_cuda_f16_kernel kernel)
{
    return kernel == FT_CUDA_F16_GEMV || kernel == FT_CUDA_F16_MMA;
}

/* wgmma and mma.sync add in different orders. */
bool ft_cuda_f16_variant_fits(const ft_cuda_f16_variant *v, const ft_cuda_f16_variant *selected,
                              const ft_cuda_device_props *props, const ft_cuda_f16_gemms *g)
{
    if (v->splits != selected->splits || is_mma(v->kernel) != is_mma(selected->kernel))
        return false;
    switch (v->kernel) {
    case FT_CUDA_F16_SMALL_M:
        return v->tile.cluster_split_k || v->splits > 1;
    case FT_CUDA_F16_LARGE_M:
        return v->splits == 1 && ft_cuda_f16_large_m_supports(props, g->p, g->count);
    case FT_CUDA_F16_SPLIT_K:
        return v->splits == ft_cuda_f16_split_k_splits(v->index) &&
               ft_cuda_f16_large_m_supports(props, g->p, g->count);
    case FT_CUDA_F16_GEMV:
        return g->p->m <= FT_CUDA_F16_GEMV_MAX_M;
    case FT_CUDA_F16_MMA:
        return true;
    }
    return false;
}

/* ---- Launch ------------------------------------------------------------------------------- */

int ft_cuda_f16_variant_launch(const ft_cuda_f16_variant *v, const ft_cuda_device_props *props,
                               void *stream, const ft_cuda_f16_gemms *g)
{
    switch (v->kernel) {
    case FT_CUDA_F16_SMALL_M:
        return ft_cuda_f16_wgmma_launch_tile(&v->tile, v->splits, props, stream, g->p, g->count);
    case FT_CUDA_F16_LARGE_M:
        return ft_cuda_f16_large_m_launch_tile(v->index, props, stream, g->p, g->count);
    case FT_CUDA_F16_SPLIT_K:
        return ft_cuda_f16_split_k_launch_tile(v->index, props, stream, g->p, g->count);
    case FT_CUDA_F16_GEMV:
        return ft_cuda_f16_gemv(props, stream, g->p);
    case FT_CUDA_F16_MMA:
        return ft_cuda_f16_mma((ft_cuda_f16_mma_tile) v->index, props, stream, g->p);
    }
    return (int) cudaErrorInvalidValue;
}

static ft_gemm_problem problem_of(const ft_cuda_f16_gemms *g)
{
    ft_gemm_problem problem = {};
    problem.m = g->p->m;
    problem.n = g->p->n * (size_t) g->count;
    problem.k = g->p->k;
    problem.x = g->p->x_dtype;
    problem.w = g->p->w_dtype;
    problem.y = g->p->y_dtype;
    problem.batch_invariant = g->batch_invariant;
    problem.activation = g->p->activation;
    problem.linears = g->count;
    return problem;
}

int ft_cuda_f16_launch_tuned(const ft_cuda_f16_variant *selected, const ft_cuda_device_props *props,
                             void *stream, const ft_cuda_f16_gemms *g)
{
    ft_gemm_problem problem = problem_of(g);
    int candidate = ft_cuda_gemm_tuned(props, &problem), status = (int) cudaErrorNotSupported;
    ft_cuda_f16_variant tuned;
    if (candidate >= 0 && ft_cuda_f16_variant_at(candidate, selected->splits, &tuned) &&
        ft_cuda_f16_variant_fits(&tuned, selected, props, g))
        status = ft_cuda_f16_variant_launch(&tuned, props, stream, g);
    return status == (int) cudaErrorNotSupported
               ? ft_cuda_f16_variant_launch(selected, props, stream, g)
               : status;
}
