/*
 * wgmma_f16_fastest.cu - selects the f16 or bf16 kernel of a GEMM.
 *
 * In encoders any kernel will do. Decoders are batch-invariant: a GEMM that splits k always has the
 * same number of splits, and one that does not may use all tiles without splits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/f16_variant.h"
#include "kernels/cuda/gemm/f16/gemm_f16.h"

enum {
    SMALL_M = FT_CUDA_F16_SMALL_M,
    LARGE_M = FT_CUDA_F16_LARGE_M,
    SPLIT_K = FT_CUDA_F16_SPLIT_K
};

/*
 * Cost model in clocks of the busiest SM, fitted to times on an H200 (m 128 .. 16384, n 768 ..
 * 4096, k 768 .. 4096): a launch, then for each wave of tiles its k tiles and what its epilogue
 * adds. Of two thread blocks that share an SM, each takes half longer for a k tile than alone.
 */
typedef struct tile_cost {
    int kind;
    int index;             /* of LARGE_M and SPLIT_K */
    ft_cuda_f16_tile tile; /* SMALL_M */
    size_t rows, cols, splits;
    size_t idle_sms; /* SMs that no cluster of this size fits on */
    size_t blocks_per_sm;
    size_t launch, epilogue, gelu, k_tile;
} tile_cost;

static const tile_cost costs[] = {
    { LARGE_M, 0, {}, 128, 192, 1, 0, 1, 6700, 100, 2700, 770 },
    { LARGE_M, 1, {}, 128, 128, 1, 0, 1, 5900, 400, 2300, 515 },
    { LARGE_M, 2, {}, 128, 256, 1, 0, 1, 5400, 1000, 4000, 1020 },
    { LARGE_M, 3, {}, 128, 192, 1, 0, 1, 4600, 1100, 2600, 770 },
    { LARGE_M, 4, {}, 128, 128, 1, 0, 1, 4800, 800, 1800, 515 },
    { SPLIT_K, 0, {}, 128, 128, 2, 0, 1, 9300, 800, 1000, 680 },
    { SPLIT_K, 1, {}, 128, 128, 4, 12, 1, 8600, 800, 600, 750 },
    { SMALL_M, 0, { 1, 32, true, 2 }, 32, 64, 1, 0, 2, 3000, 200, 300, 470 },
    { SMALL_M, 0, { 1, 64, true, 2 }, 64, 64, 1, 0, 2, 4400, 400, 600, 560 },
    { SMALL_M, 0, { 1, 96, true, 1 }, 96, 64, 1, 0, 1, 7400, 400, 900, 363 },
    { SMALL_M, 0, { 1, 64, true, 1 }, 64, 64, 4, 33, 1, 7000, 400, 600, 373 },
};

/* Tiles of wgmma_f16_large_m.cu may span GEMMs. */
static size_t column_tiles(const tile_cost *c, size_t n, size_t count)
{
    return c->kind == LARGE_M && n % 64 == 0 ? ft_ceil_div(n * count, c->cols)
                                             : ft_ceil_div(n, c->cols) * count;
}

static size_t clocks_of(const tile_cost *c, const ft_cuda_device_props *props,
                        const ft_cuda_float_gemm_args *p, int count)
{
    size_t tiles = ft_ceil_div(p->m, c->rows) * column_tiles(c, p->n, (size_t) count);
    size_t slots = ((size_t) props->sm_count - c->idle_sms) * c->blocks_per_sm / c->splits;
    size_t k_tiles = ft_ceil_div(ft_ceil_div(p->k, (size_t) 64), c->splits);
    size_t k_tile =
        c->blocks_per_sm == 2 && tiles <= (size_t) props->sm_count ? c->k_tile * 2 / 3 : c->k_tile;
    size_t epilogue = c->epilogue + (p->activation == FT_ACT_NONE ? 0 : c->gelu);
    return c->launch + ft_ceil_div(tiles, slots) * (k_tiles * k_tile + epilogue);
}

/* The tile with the least cost; split-K only where `may_split`. */
static const tile_cost *select(const ft_cuda_device_props *props, const ft_cuda_float_gemm_args *p,
                               int count, bool may_split)
{
    bool any = ft_cuda_f16_large_m_supports(props, p, count);
    size_t min_clocks = SIZE_MAX;
    const tile_cost *best = NULL;
    for (const tile_cost &c : costs) {
        size_t clocks = clocks_of(&c, props, p, count);
        if (clocks >= min_clocks || (!any && c.kind != SMALL_M) || (!may_split && c.splits > 1) ||
            ft_ceil_div(p->k, (size_t) 64) < c.splits)
            continue;
        min_clocks = clocks;
        best = &c;
    }
    return best;
}

static ft_cuda_f16_variant variant_of(const tile_cost *c)
{
    return { (ft_cuda_f16_kernel) c->kind, c->index, c->tile, (int) c->splits };
}

static ft_cuda_f16_variant select_batch_invariant(const ft_cuda_device_props *props,
                                                  const ft_cuda_float_gemm_args *p, int count)
{
    enum { MANY_ROWS = 256 };
    int splits = ft_cuda_f16_wgmma_splits(p->n, p->k);
    if (splits == 1 && p->m > MANY_ROWS && ft_cuda_f16_large_m_supports(props, p, count))
        return variant_of(select(props, p, count, false));
    return { FT_CUDA_F16_SMALL_M, 0, ft_cuda_f16_wgmma_select(props, p, count), splits };
}

bool ft_cuda_f16_select(const ft_cuda_device_props *props, const ft_cuda_f16_gemms *g,
                        ft_cuda_f16_variant *out)
{
    const ft_cuda_float_gemm_args *p = g->p;
    bool few = p->m <= FT_CUDA_F16_GEMV_MAX_M;
    if (ft_cuda_f16_wgmma_supports(props, p))
        *out = g->batch_invariant ? select_batch_invariant(props, p, g->count)
                                  : variant_of(select(props, p, g->count, true));
    else if (g->batch_invariant && g->count == 1 && ft_cuda_f16_mma_supports(props, p))
        *out = few ? ft_cuda_f16_variant{ FT_CUDA_F16_GEMV, 0, {}, 1 }
                   : ft_cuda_f16_variant{
                         FT_CUDA_F16_MMA, (int) ft_cuda_f16_mma_select(props, p), {}, 1
                     };
    else
        return false;
    return true;
}

static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p,
                  int count, bool batch_invariant)
{
    const ft_cuda_f16_gemms g = { p, count, batch_invariant };
    ft_cuda_f16_variant selected;
    return ft_cuda_f16_select(props, &g, &selected)
               ? ft_cuda_f16_launch_tuned(&selected, props, stream, &g)
               : (int) cudaErrorNotSupported;
}

int ft_cuda_f16_wgmma_fastest(const ft_cuda_device_props *props, void *stream,
                              const ft_cuda_float_gemm_args *p, int count)
{
    return launch(props, stream, p, count, false);
}

int ft_cuda_f16_wgmma(const ft_cuda_device_props *props, void *stream,
                      const ft_cuda_float_gemm_args *p, int count)
{
    return launch(props, stream, p, count, true);
}

/*
 * The choice between families of kernels never depends on m, and the kernels of a family return the
 * same bits.
 */
extern "C" int ft_cuda_float_gemm_batch_invariant(const ft_cuda_device_props *props, void *stream,
                                                  const ft_cuda_float_gemm_args *p)
{
    if (p->m == 0 || p->n == 0)
        return (int) cudaSuccess;
    int status = launch(props, stream, p, 1, true);
    return status == (int) cudaErrorNotSupported ? ft_cuda_float_gemv(props, stream, p) : status;
}
