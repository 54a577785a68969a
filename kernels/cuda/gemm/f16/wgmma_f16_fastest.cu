/*
 * wgmma_f16_fastest.cu - selects the f16 or bf16 wgmma kernel of a GEMM that need not be
 * batch-invariant, as in encoders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"

typedef enum kernel_kind { SMALL_M, LARGE_M, SPLIT_K } kernel_kind;

/*
 * Cost model in clocks of the busiest SM, fitted to times on an H200 (m 128 .. 16384, n 768 .. 4096,
 * k 768 .. 4096): a launch, then for each wave of tiles its k tiles and what its epilogue adds.
 */
typedef struct tile_cost {
    kernel_kind kind;
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
    { LARGE_M, 4, {}, 128, 128, 1, 0, 1, 4400, 800, 1800, 515 },
    { SPLIT_K, 0, {}, 128, 128, 2, 0, 1, 6000, 800, 1000, 515 },
    { SPLIT_K, 1, {}, 128, 128, 4, 12, 1, 6400, 800, 600, 515 },
    { SPLIT_K, 2, {}, 128, 192, 2, 0, 1, 6400, 1100, 1500, 770 },
    { SPLIT_K, 3, {}, 128, 192, 4, 12, 1, 6800, 1100, 900, 770 },
    { SMALL_M, 0, { 1, 32, true, 2 }, 32, 64, 1, 0, 2, 3000, 200, 300, 470 },
    { SMALL_M, 0, { 1, 64, true, 2 }, 64, 64, 1, 0, 2, 4000, 400, 600, 560 },
};

static size_t clocks_of(const tile_cost *c, const ft_cuda_device_props *props,
                        const ft_cuda_float_gemm_args *p, int count)
{
    size_t tiles = ft_ceil_div(p->m, c->rows) * ft_ceil_div(p->n, c->cols) * (size_t) count;
    size_t slots = ((size_t) props->sm_count - c->idle_sms) * c->blocks_per_sm / c->splits;
    size_t k_tiles = ft_ceil_div(ft_ceil_div(p->k, (size_t) 64), c->splits);
    size_t epilogue = c->epilogue + (p->activation == FT_ACT_NONE ? 0 : c->gelu);
    return c->launch + ft_ceil_div(tiles, slots) * (k_tiles * c->k_tile + epilogue);
}

int ft_cuda_f16_wgmma_fastest(const ft_cuda_device_props *props, void *stream,
                              const ft_cuda_float_gemm_args *p, int count)
{
    bool any = ft_cuda_f16_large_m_supports(props, p, count);
    size_t min_clocks = SIZE_MAX;
    const tile_cost *best = NULL;
    for (const tile_cost &c : costs) {
        size_t clocks = clocks_of(&c, props, p, count);
        if (clocks >= min_clocks || (!any && c.kind != SMALL_M) ||
            ft_ceil_div(p->k, (size_t) 64) < c.splits)
            continue;
        min_clocks = clocks;
        best = &c;
    }
    if (best->kind == LARGE_M)
        return ft_cuda_f16_large_m_launch_tile(best->index, props, stream, p, count);
    if (best->kind == SPLIT_K)
        return ft_cuda_f16_split_k_launch_tile(best->index, props, stream, p, count);
    return ft_cuda_f16_wgmma_launch_tile(&best->tile, 1, props, stream, p, count);
}
