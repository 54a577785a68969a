/*
 * wgmma_f16_gemm.cuh - mainloop of the f16 and bf16 wgmma GEMM: both operands from a TMA pipeline
 * in shared memory.
 *
 * Weights are the 64 rows (M) of the instruction and rows of x its columns (N): decoding has few
 * rows of x, and N may be any multiple of 8. A k tile is 64 k of the weight rows, then of the rows
 * of x. Two producer threads fill the pipeline: one loads weights, which do not depend on the
 * predecessor, the other x.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_CUH
#define FT_KERNELS_CUDA_GEMM_F16_WGMMA_F16_GEMM_CUH

#include "kernels/cuda/ptx/cluster.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    F16_TILE_K = 64, /* k per k tile */
    F16_TILE_K_BYTES = 2 * F16_TILE_K,
    F16_WARPGROUP_THREADS = 128, /* threads per warpgroup */
    F16_MAX_STAGES = 24,         /* maximum */
    F16_MAX_SPLITS = 4,          /* maximum */
    F16_EPILOGUE_TILES = 4,      /* 8-row tiles that a warp transposes at a time */
    F16_EPILOGUE_PITCH = 20,     /* floats per row of the transposed tile */
};

/*
 * WARPGROUPS x 64 weight rows by ROWS rows of x; SERIAL_SPLITS: one thread block accumulates all
 * splits one after the other.
 */
template <int WARPGROUPS_, int ROWS_, bool SERIAL_SPLITS_> struct f16_tile_config {
    static constexpr int warpgroups = WARPGROUPS_, rows = ROWS_;
    static constexpr bool serial_splits = SERIAL_SPLITS_;
    static constexpr int weights = 64 * warpgroups, consumers = F16_WARPGROUP_THREADS * warpgroups;
    /*
     * Two warps are producers; where accumulators need more registers, a whole warpgroup that gives
     * up its own with setmaxnreg.
     */
    static constexpr bool needs_setmaxnreg =
        warpgroups == 2 && rows * (serial_splits ? 2 : 1) > 128;
    static constexpr int threads = consumers + (needs_setmaxnreg ? F16_WARPGROUP_THREADS : 64);
    static constexpr int w_bytes = weights * F16_TILE_K_BYTES, x_bytes = rows * F16_TILE_K_BYTES;
    static constexpr int k_tiles_per_stage = rows <= 32 ? 2 : 1; /* k tiles per stage */
    static constexpr int panel = w_bytes + x_bytes, stage = k_tiles_per_stage * panel,
                         m8_tiles = rows / 8;
    static constexpr int acc_count = weights * rows * (serial_splits ? 2 : 1); /* accumulators */
    static constexpr int blocks_per_sm =
        acc_count >= 64 * 256 || (warpgroups == 2 && acc_count >= 128 * 64) ? 1 : 2;
};

/*
 * A lane's accumulators: weight rows g and g + 8 of its warp's 16, rows 8j + 2t and 8j + 2t + 1 of
 * x.
 */
template <class SHAPE> using f16_acc = float[SHAPE::rows / 2];

/* Fused GEMMs of one x and one shape: weights, biases and outputs. */
typedef struct f16_gemm_params {
    CUtensorMap w[FT_CUDA_MAX_FUSED], x;
    const float *bias[FT_CUDA_MAX_FUSED]; /* NULL: none */
    void *y[FT_CUDA_MAX_FUSED];
    ft_dtype y_dtype;
    ft_activation activation;
    int m, n, k_tiles, splits;
    int row_tiles, col_tiles, tiles; /* tiles: of all fused GEMMs */
    int cluster_size;                /* thread blocks that share a tile: 1, or one per split */
    int stages, x_bytes;             /* stages of the pipeline; bytes of an x copy */
    int store_width;                 /* vector width of stores to y: 4, 2 or 1 */
} f16_gemm_params;

/* Shared memory after the pipeline stages. */
template <class SHAPE> struct f16_smem_tail {
    float transposed[SHAPE::consumers / 32][F16_EPILOGUE_TILES][8][F16_EPILOGUE_PITCH];
    uint64_t full[F16_MAX_STAGES], empty[F16_MAX_STAGES];
    alignas(16) float4 partials[]; /* [split][8-row tile][thread], for clusters */
};

/* 8-row tiles that a thread block finishes of a full tile, at least 1. */
template <class SHAPE> __host__ __device__ constexpr int f16_m8_tiles_per_block(int cluster_size)
{
    return SHAPE::m8_tiles > cluster_size ? SHAPE::m8_tiles / cluster_size : 1;
}

/* Bytes of partial sums that a thread block receives. */
template <class SHAPE> constexpr size_t f16_partial_bytes(int cluster_size)
{
    return cluster_size == 1
               ? 0
               : (size_t) (cluster_size * f16_m8_tiles_per_block<SHAPE>(cluster_size) *
                           SHAPE::consumers) *
                     sizeof(float4);
}

#ifdef FT_HAS_WGMMA

/* ---- Tile coordinates ---------------------------------------------------------------------- */

typedef struct f16_tile_coord {
    int gemm, col, row;
} f16_tile_coord;

/* Consecutive tiles share weights. */
__device__ __forceinline__ f16_tile_coord f16_tile_coord_of(const f16_gemm_params &a, int tile,
                                                            int tile_rows, int tile_weights)
{
    int column = tile / a.row_tiles;
    f16_tile_coord coord = { column / a.col_tiles, column % a.col_tiles * tile_weights,
                             tile % a.row_tiles * tile_rows };
    return coord;
}

/* The first k tile of a split. */
__device__ __forceinline__ int f16_split_begin(const f16_gemm_params &a, int split)
{
    return a.k_tiles * split / a.splits;
}

/* Work of a thread block: tiles first, first + stride, ...; in each, k tiles from .. to. */
typedef struct f16_block_work {
    int rank, first, stride, from, to;
} f16_block_work;

__device__ __forceinline__ f16_block_work f16_block_work_of(const f16_gemm_params &a)
{
    f16_block_work work;
    work.rank = (int) blockIdx.x % a.cluster_size;
    work.first = (int) blockIdx.x / a.cluster_size;
    work.stride = (int) gridDim.x / a.cluster_size;
    work.from = a.cluster_size > 1 ? f16_split_begin(a, work.rank) : 0;
    work.to = a.cluster_size > 1 ? f16_split_begin(a, work.rank + 1) : a.k_tiles;
    return work;
}

/* ---- Producer -------------------------------------------------------------------------------- */

/* One thread per operand. */
template <class SHAPE, bool weights>
__device__ __forceinline__ void f16_produce(char *stages_smem, f16_smem_tail<SHAPE> &tail,
                                            const f16_gemm_params &a, const f16_block_work &work)
{
    ft_pipeline_state state = { 0, 0 };
    constexpr int k_tiles = SHAPE::k_tiles_per_stage;
    for (int tile = work.first; tile < a.tiles; tile += work.stride) {
        f16_tile_coord coord = f16_tile_coord_of(a, tile, SHAPE::rows, SHAPE::weights);
        for (int k_tile = work.from; k_tile < work.to; k_tile += k_tiles) {
            char *panel = stages_smem + state.stage_index * SHAPE::stage;
            ft_pipeline_producer_acquire(tail, state);
            uint64_t *full = ft_pipeline_producer_expect(
                tail, state, k_tiles * (weights ? SHAPE::w_bytes : a.x_bytes));
#pragma unroll
            for (int i = 0; i < k_tiles; i++, panel += SHAPE::panel) {
                /* out-of-bounds x and weights read as zero */
                int right = (k_tile + i < work.to ? k_tile + i : a.k_tiles) * F16_TILE_K_BYTES;
                if (weights)
                    ft_tma_load_2d(panel, &a.w[coord.gemm], full, coord.col, right);
                else
                    ft_tma_load_2d(panel + SHAPE::w_bytes, &a.x, full, coord.row, right);
            }
            state.advance(a.stages);
        }
    }
}

/* ---- Consumer -------------------------------------------------------------------------------- */

template <class SHAPE, bool bf16>
__device__ __forceinline__ void f16_mma_k_tile(const char *panel, f16_acc<SHAPE> &sums, bool first)
{
    uint64_t w =
        ft_wgmma_descriptor(panel + threadIdx.x / F16_WARPGROUP_THREADS * (64 * F16_TILE_K_BYTES));
    uint64_t x = ft_wgmma_descriptor(panel + SHAPE::w_bytes);
#pragma unroll
    for (int k = 0; k < F16_TILE_K / 16; k++)
        ft_wgmma_f16<SHAPE::rows, bf16>(sums, w + 2 * k, x + 2 * k, k > 0 || !first);
}

/*
 * sums = the next `k_tiles` k tiles; a stage is released once the wgmma of the next one is in
 * flight.
 */
template <class SHAPE, bool bf16>
__device__ __forceinline__ void f16_mainloop(const char *stages_smem, f16_smem_tail<SHAPE> &tail,
                                             const f16_gemm_params &a, ft_pipeline_state &state,
                                             int k_tiles, f16_acc<SHAPE> &sums)
{
    int prev_stage = -1;
    for (int i = 0; i < k_tiles; i += SHAPE::k_tiles_per_stage, state.advance(a.stages)) {
        const char *stage = stages_smem + state.stage_index * SHAPE::stage;
        ft_pipeline_consumer_wait(tail, state);
        ft_wgmma_fence();
#pragma unroll
        for (int j = 0; j < SHAPE::k_tiles_per_stage; j++)
            f16_mma_k_tile<SHAPE, bf16>(stage + j * SHAPE::panel, sums, i + j == 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (prev_stage >= 0)
            ft_pipeline_consumer_release(tail, prev_stage);
        prev_stage = state.stage_index;
    }
    ft_wgmma_wait<0>();
    ft_pipeline_consumer_release(tail, prev_stage);
    ft_wgmma_fence_acc(sums);
}

/* The accumulators of a thread block over its splits. */
template <class SHAPE, bool bf16>
__device__ __forceinline__ void
f16_accumulate_splits(const char *stages_smem, f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a,
                      const f16_block_work &work, ft_pipeline_state &state, f16_acc<SHAPE> &sums)
{
    if constexpr (SHAPE::serial_splits) {
        f16_acc<SHAPE> split;
        for (int r = 0; r < a.splits; r++) {
            f16_mainloop<SHAPE, bf16>(stages_smem, tail, a, state,
                                      f16_split_begin(a, r + 1) - f16_split_begin(a, r), split);
#pragma unroll
            for (int i = 0; i < SHAPE::rows / 2; i++)
                sums[i] = r == 0 ? split[i] : sums[i] + split[i];
        }
    } else {
        f16_mainloop<SHAPE, bf16>(stages_smem, tail, a, state, work.to - work.from, sums);
    }
}

#endif
#endif
