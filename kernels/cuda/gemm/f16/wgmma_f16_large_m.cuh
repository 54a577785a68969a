/*
 * wgmma_f16_large_m.cuh - mainloop of the f16 and bf16 wgmma GEMM for many rows of x.
 *
 * Rows of x are the rows (M) of the instruction and weights its columns (N), so a lane holds
 * neighbouring columns of y. One persistent thread block of three warpgroups per SM: two threads of
 * the producer warpgroup fill a TMA pipeline, the two consumer warpgroups run mainloop and
 * epilogue:
 *
 *   ping-pong     each warpgroup has tiles of its own; its epilogue overlaps the other's mainloop;
 *   cooperative   each warpgroup computes half of the rows of every tile.
 *
 * The tensor cores accumulate k from first to last, 16 at a time, as wgmma_f16_gemm.cuh does
 * without split-K, so all tiles return the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_LARGE_M_CUH
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_LARGE_M_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/ptx/named_barrier.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    LARGE_M_TILE_K = 64, /* k per stage */
    LARGE_M_TILE_K_BYTES = 2 * LARGE_M_TILE_K,
    LARGE_M_WARPGROUP_THREADS = 128,
    LARGE_M_THREADS = 3 * LARGE_M_WARPGROUP_THREADS, /* producer and two consumer warpgroups */
    LARGE_M_STORE_COLS = 64,                         /* columns of a TMA store: 128 bytes */
    LARGE_M_STORE_BYTES = 16 * 2 * LARGE_M_STORE_COLS,
    LARGE_M_COLUMN_GROUP = 16, /* column tiles that consecutive tiles traverse */
};

/* A warpgroup computes M64_BLOCKS x 64 rows by COLS columns. */
template <int M64_BLOCKS, int COLS, int STAGES, bool PINGPONG> struct large_m_tile {
    static constexpr int m64_blocks = M64_BLOCKS, cols = COLS, stages = STAGES;
    static constexpr bool is_pingpong = PINGPONG, spans_gemms = true;
    static constexpr int rows = (is_pingpong ? 64 : 128) * m64_blocks;
    static constexpr unsigned consumer_warps = is_pingpong ? 4 : 8; /* warps that read a stage */
    static constexpr int store_warps = 8, stores = cols % (2 * LARGE_M_STORE_COLS) == 0 ? 2 : 3;
};

/* Fused GEMMs of one x and one shape. */
typedef struct large_m_params {
    CUtensorMap x, w[FT_CUDA_MAX_FUSED], y[FT_CUDA_MAX_FUSED];
    const float *bias[FT_CUDA_MAX_FUSED]; /* NULL: none */
    void *result[FT_CUDA_MAX_FUSED];      /* what the maps of y describe */
    int m, n, k_tiles;
    int gemms, pitch; /* pitch: columns from one to the next, more than n where tiles span none */
    int w_box;        /* weight rows per copy: those of a tile, or LARGE_M_STORE_COLS */
    int row_tiles, tiles;
} large_m_params;

template <class TILE> struct large_m_smem {
    char x[TILE::stages][TILE::rows * LARGE_M_TILE_K_BYTES];
    char w[TILE::stages][TILE::cols * LARGE_M_TILE_K_BYTES];
    char y[TILE::store_warps][TILE::stores][LARGE_M_STORE_BYTES]; /* stores in flight per warp */
    float bias[2][TILE::cols];                                    /* per warpgroup */
    uint64_t full[TILE::stages], empty[TILE::stages];
};

#ifdef FT_HAS_WGMMA

/* ---- Tile coordinates ---------------------------------------------------------------------- */

/* Of a tile; the columns of all GEMMs are numbered one after the other. */
typedef struct large_m_coord {
    int col, row;
} large_m_coord;

/*
 * Consecutive tiles traverse up to LARGE_M_COLUMN_GROUP columns, then the rows, so that the tiles
 * which run at the same time share both operands in L2.
 */
template <class TILE>
__device__ __forceinline__ large_m_coord large_m_coord_of(const large_m_params &a, int tile)
{
    int columns = a.tiles / a.row_tiles;
    int group = tile / (LARGE_M_COLUMN_GROUP * a.row_tiles) * LARGE_M_COLUMN_GROUP;
    int width = min(LARGE_M_COLUMN_GROUP, columns - group), rest = tile - group * a.row_tiles;
    large_m_coord coord = { (group + rest % width) * TILE::cols, rest / width * TILE::rows };
    return coord;
}

/* A column of a GEMM, or one beyond its last. */
typedef struct large_m_column {
    int gemm, col;
} large_m_column;

__device__ __forceinline__ large_m_column large_m_column_of(const large_m_params &a, int col)
{
    large_m_column column = { 0, col };
#pragma unroll
    for (int i = 1; i < FT_CUDA_MAX_FUSED; i++)
        if (i < a.gemms && col >= i * a.pitch)
            column = { i, col - i * a.pitch };
    return column;
}

/* Work of a thread block: tiles first, first + stride, ...; in each, k tiles from .. to. */
typedef struct large_m_work {
    int first, stride, from, to;
} large_m_work;

/* ---- Producer -------------------------------------------------------------------------------- */

/* One thread, before all others start. */
template <class TILE>
__device__ __forceinline__ void large_m_pipeline_init(large_m_smem<TILE> &s,
                                                      const large_m_params &a)
{
    ft_tma_prefetch_map(&a.x);
    ft_tma_prefetch_map(&a.w[0]);
    for (int i = 0; i < TILE::stages; i++)
        ft_pipeline_init_stage(s, i, 2, TILE::consumer_warps);
    ft_mbarrier_fence_init();
}

/* Where the weights of a tile are: each LARGE_M_STORE_COLS columns, for tiles that span GEMMs. */
template <class TILE> struct large_m_weights {
    static constexpr int parts = TILE::cols / LARGE_M_STORE_COLS;
    large_m_column part[parts];

    __device__ __forceinline__ large_m_weights(const large_m_params &a, int first)
    {
#pragma unroll
        for (int i = 0; i < parts; i++)
            part[i] = large_m_column_of(a, first + i * LARGE_M_STORE_COLS);
    }
    /* Copy a k tile of them. */
    __device__ __forceinline__ void load(char *to, const large_m_params &a, int right,
                                         uint64_t *full) const
    {
        ft_tma_load_2d(to, &a.w[part[0].gemm], full, part[0].col, right);
        if (a.w_box == TILE::cols)
            return;
#pragma unroll
        for (int i = 1; i < parts; i++)
            ft_tma_load_2d(to + i * LARGE_M_STORE_COLS * LARGE_M_TILE_K_BYTES, &a.w[part[i].gemm],
                           full, part[i].col, right);
    }
};

/*
 * One thread for x and one for the weights. Weights do not depend on the predecessor, so their
 * copies start before it ends.
 */
template <class TILE>
__device__ __forceinline__ void large_m_produce(large_m_smem<TILE> &s, const large_m_params &a,
                                                const large_m_work &work, bool weights)
{
    ft_pipeline_state state = { 0, 0 };
    unsigned bytes = (weights ? TILE::cols : TILE::rows) * LARGE_M_TILE_K_BYTES;
    if (!weights)
        ft_pdl_wait();
    for (int tile = work.first; tile < a.tiles; tile += work.stride) {
        large_m_coord coord = large_m_coord_of<TILE>(a, tile);
        large_m_weights<TILE> columns(a, coord.col);
        for (int k_tile = work.from; k_tile < work.to; k_tile++, state.advance(TILE::stages)) {
            uint64_t *full = ft_pipeline_producer_acquire(s, state, bytes);
            int right = k_tile * LARGE_M_TILE_K_BYTES;
            if (weights)
                columns.load(s.w[state.stage_index], a, right, full);
            else
                ft_tma_load_2d(s.x[state.stage_index], &a.x, full, coord.row, right);
        }
    }
    if (!weights)
        ft_pdl_launch_dependents();
}

/* ---- Consumer -------------------------------------------------------------------------------- */

/* A lane's accumulators. */
template <class TILE> using large_m_acc = float[TILE::m64_blocks][TILE::cols / 2];

/*
 * sums = the next k_tiles k tiles, from pipeline stage number `first` on, for the rows from
 * own_row. A stage is released once the wgmma of the next one is in flight.
 */
template <class TILE, bool bf16>
__device__ __forceinline__ void large_m_mainloop(large_m_smem<TILE> &s, int first, int k_tiles,
                                                 int own_row, large_m_acc<TILE> &sums)
{
    ft_pipeline_state state = ft_pipeline_state_after(first, TILE::stages);
    int prev_stage = -1;
    for (int k_tile = 0; k_tile < k_tiles; k_tile++) {
        ft_pipeline_consumer_wait(s, state);
        uint64_t x = ft_wgmma_descriptor(s.x[state.stage_index] + own_row * LARGE_M_TILE_K_BYTES);
        uint64_t w = ft_wgmma_descriptor(s.w[state.stage_index]);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < LARGE_M_TILE_K / 16; k++)
#pragma unroll
            for (int i = 0; i < TILE::m64_blocks; i++)
                ft_wgmma_f16<TILE::cols, bf16>(sums[i], x + 512 * i + 2 * k, w + 2 * k,
                                               k > 0 || k_tile > 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (prev_stage >= 0)
            ft_pipeline_consumer_release(s, prev_stage);
        prev_stage = state.stage_index;
        state.advance(TILE::stages);
    }
    ft_wgmma_wait<0>();
    ft_pipeline_consumer_release(s, prev_stage);
#pragma unroll
    for (int i = 0; i < TILE::m64_blocks; i++)
        ft_wgmma_fence_acc(sums[i]);
}

#endif

/* ---- Host ----------------------------------------------------------------------------------- */

/* Columns from one GEMM to the next, where tiles of `cols` columns may span several GEMMs. */
static inline size_t large_m_pitch(size_t n, size_t cols, bool spans)
{
    return spans && n % LARGE_M_STORE_COLS == 0 ? n : ft_ceil_div(n, cols) * cols;
}

/* The operands of `count` GEMMs. */
template <class TILE>
static int large_m_params_init(large_m_params *a, const ft_cuda_float_gemm_args *p, int count)
{
    size_t bytes = 2 * p->k, pitch = large_m_pitch(p->n, TILE::cols, TILE::spans_gemms);
    unsigned w_box = count > 1 && pitch % TILE::cols != 0 ? LARGE_M_STORE_COLS : TILE::cols;
    *a = (large_m_params){};
    int status = ft_tma_map_2d(&a->x, p->x, p->m, bytes, TILE::rows);
    for (int i = 0; i < count && status == 0; i++) {
        status = ft_tma_map_2d(&a->w[i], p[i].w, p->n, bytes, w_box);
        if (status == 0)
            status = ft_tma_map_2d(&a->y[i], p[i].y, p->m, 2 * p->n, 16);
        a->bias[i] = p[i].bias;
        a->result[i] = p[i].y;
    }
    a->m = (int) p->m;
    a->n = (int) p->n;
    a->k_tiles = (int) ft_ceil_div(p->k, (size_t) LARGE_M_TILE_K);
    a->row_tiles = (int) ft_ceil_div(p->m, (size_t) TILE::rows);
    a->gemms = count;
    a->pitch = (int) pitch;
    a->w_box = (int) w_box;
    a->tiles = a->row_tiles * (int) ft_ceil_div(pitch * (size_t) count, (size_t) TILE::cols);
    return status;
}

#endif
