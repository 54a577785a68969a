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
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    STEADY_STEP = 64, /* k per k tile */
    STEADY_LINE = 2 * STEADY_STEP,
    STEADY_TEAM = 128,  /* threads per warpgroup */
    STEADY_STAGES = 24, /* maximum */
    STEADY_RANGES = 4,  /* maximum */
    STEADY_EIGHTS = 4,  /* 8-row tiles that a warp transposes at a time */
    STEADY_TURNED = 20, /* floats per row of the transposed tile */
};

/*
 * TEAMS x 64 weight rows by ROWS rows of x; IN_TURNS: one thread block accumulates all splits one
 * after the other.
 */
template <int TEAMS_, int ROWS_, bool IN_TURNS_> struct steady_shape {
    static constexpr int teams = TEAMS_, rows = ROWS_;
    static constexpr bool in_turns = IN_TURNS_;
    static constexpr int weights = 64 * teams, workers = STEADY_TEAM * teams;
    /*
     * Two warps are producers; where accumulators need more registers, a whole warpgroup that gives
     * up its own with setmaxnreg.
     */
    static constexpr bool crowded = teams == 2 && rows * (in_turns ? 2 : 1) > 128;
    static constexpr int threads = workers + (crowded ? STEADY_TEAM : 64);
    static constexpr int w_bytes = weights * STEADY_LINE, x_bytes = rows * STEADY_LINE;
    static constexpr int depth = rows <= 32 ? 2 : 1; /* k tiles per stage */
    static constexpr int panel = w_bytes + x_bytes, stage = depth * panel, eights = rows / 8;
    static constexpr int kept = weights * rows * (in_turns ? 2 : 1); /* accumulators */
    static constexpr int beside = kept >= 64 * 256 || (teams == 2 && kept >= 128 * 64) ? 1 : 2;
};

/*
 * A lane's accumulators: weight rows g and g + 8 of its warp's 16, rows 8j + 2t and 8j + 2t + 1 of
 * x.
 */
template <class SHAPE> using steady_sums = float[SHAPE::rows / 2];

/* Fused GEMMs of one x and one shape: weights, biases and outputs. */
typedef struct steady_args {
    CUtensorMap w[FT_CUDA_PARTS], x;
    const float *bias[FT_CUDA_PARTS]; /* NULL: none */
    void *y[FT_CUDA_PARTS];
    ft_dtype y_dtype;
    ft_activation activation;
    int m, n, steps, ranges;
    int row_tiles, col_tiles, tiles; /* tiles: of all fused GEMMs */
    int blocks;                      /* thread blocks that share a tile: 1, or one per split */
    int stages, x_bytes;             /* stages of the pipeline; bytes of an x copy */
    int together;                    /* vector width of stores to y: 4, 2 or 1 */
} steady_args;

/* Shared memory after the pipeline stages. */
template <class SHAPE> struct steady_rest {
    float turned[SHAPE::workers / 32][STEADY_EIGHTS][8][STEADY_TURNED];
    uint64_t full[STEADY_STAGES], empty[STEADY_STAGES];
    alignas(16) float4 shares[]; /* [split][8-row tile][thread], for clusters */
};

/* 8-row tiles that a thread block finishes of a full tile, at least 1. */
template <class SHAPE> __host__ __device__ constexpr int steady_each(int blocks)
{
    return SHAPE::eights > blocks ? SHAPE::eights / blocks : 1;
}

/* Bytes of partial sums that a thread block receives. */
template <class SHAPE> constexpr size_t steady_share_room(int blocks)
{
    return blocks == 1
               ? 0
               : (size_t) (blocks * steady_each<SHAPE>(blocks) * SHAPE::workers) * sizeof(float4);
}

#ifdef FT_HAS_WGMMA

/* ---- Tile coordinates ---------------------------------------------------------------------- */

typedef struct steady_place {
    int gemm, col, row;
} steady_place;

/* Consecutive tiles share weights. */
__device__ __forceinline__ steady_place steady_place_of(const steady_args &a, int tile,
                                                        int tile_rows, int tile_weights)
{
    int column = tile / a.row_tiles;
    steady_place place = { column / a.col_tiles, column % a.col_tiles * tile_weights,
                           tile % a.row_tiles * tile_rows };
    return place;
}

/* The first k tile of a split. */
__device__ __forceinline__ int steady_first(const steady_args &a, int range)
{
    return a.steps * range / a.ranges;
}

/* Work of a thread block: tiles first, first + stride, ...; in each, k tiles from .. to. */
typedef struct steady_part {
    int rank, first, stride, from, to;
} steady_part;

__device__ __forceinline__ steady_part steady_part_of(const steady_args &a)
{
    steady_part part;
    part.rank = (int) blockIdx.x % a.blocks;
    part.first = (int) blockIdx.x / a.blocks;
    part.stride = (int) gridDim.x / a.blocks;
    part.from = a.blocks > 1 ? steady_first(a, part.rank) : 0;
    part.to = a.blocks > 1 ? steady_first(a, part.rank + 1) : a.steps;
    return part;
}

/* Pipeline state: stage index and phase parity. */
typedef struct steady_position {
    int slot;
    unsigned parity;
} steady_position;

__device__ __forceinline__ void steady_advance(steady_position &at, int stages)
{
    if (++at.slot == stages) {
        at.slot = 0;
        at.parity ^= 1;
    }
}

/* ---- Producer -------------------------------------------------------------------------------- */

/* One thread per operand. */
template <class SHAPE, bool weights>
__device__ __forceinline__ void steady_load(char *ring, steady_rest<SHAPE> &rest,
                                            const steady_args &a, const steady_part &part)
{
    steady_position at = { 0, 0 };
    for (int tile = part.first; tile < a.tiles; tile += part.stride) {
        steady_place place = steady_place_of(a, tile, SHAPE::rows, SHAPE::weights);
        for (int step = part.from; step < part.to; step += SHAPE::depth) {
            char *panel = ring + at.slot * SHAPE::stage;
            uint64_t *full = &rest.full[at.slot];
            ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, SHAPE::depth * (weights ? SHAPE::w_bytes : a.x_bytes));
#pragma unroll
            for (int i = 0; i < SHAPE::depth; i++, panel += SHAPE::panel) {
                /* out-of-bounds x and weights read as zero */
                int right = (step + i < part.to ? step + i : a.steps) * STEADY_LINE;
                if (weights)
                    ft_load_box(panel, &a.w[place.gemm], full, place.col, right);
                else
                    ft_load_box(panel + SHAPE::w_bytes, &a.x, full, place.row, right);
            }
            steady_advance(at, a.stages);
        }
    }
}

/* ---- Consumer -------------------------------------------------------------------------------- */

template <class SHAPE, bool bf16>
__device__ __forceinline__ void steady_multiply_panel(const char *panel, steady_sums<SHAPE> &sums,
                                                      bool first)
{
    uint64_t w = ft_wgmma_operand(panel + threadIdx.x / STEADY_TEAM * (64 * STEADY_LINE));
    uint64_t x = ft_wgmma_operand(panel + SHAPE::w_bytes);
#pragma unroll
    for (int k = 0; k < STEADY_STEP / 16; k++)
        ft_wgmma_halves<SHAPE::rows, bf16>(sums, w + 2 * k, x + 2 * k, k > 0 || !first);
}

/*
 * sums = the next `k_tiles` k tiles; a stage is released once the wgmma of the next one is in
 * flight.
 */
template <class SHAPE, bool bf16>
__device__ __forceinline__ void steady_multiply(const char *ring, steady_rest<SHAPE> &rest,
                                                const steady_args &a, steady_position &at,
                                                int steps, steady_sums<SHAPE> &sums)
{
    int before = -1;
    bool first_lane = threadIdx.x % 32 == 0;
    for (int i = 0; i < steps; i += SHAPE::depth, steady_advance(at, a.stages)) {
        const char *stage = ring + at.slot * SHAPE::stage;
        ft_barrier_wait(&rest.full[at.slot], at.parity);
        ft_wgmma_begin();
#pragma unroll
        for (int j = 0; j < SHAPE::depth; j++)
            steady_multiply_panel<SHAPE, bf16>(stage + j * SHAPE::panel, sums, i + j == 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (before >= 0 && first_lane)
            ft_barrier_arrive(&rest.empty[before]);
        before = at.slot;
    }
    ft_wgmma_wait<0>();
    if (first_lane)
        ft_barrier_arrive(&rest.empty[before]);
    ft_wgmma_settle(sums);
}

/* The accumulators of a thread block over its splits. */
template <class SHAPE, bool bf16>
__device__ __forceinline__ void steady_add_up(const char *ring, steady_rest<SHAPE> &rest,
                                              const steady_args &a, const steady_part &part,
                                              steady_position &at, steady_sums<SHAPE> &sums)
{
    if constexpr (SHAPE::in_turns) {
        steady_sums<SHAPE> range;
        for (int r = 0; r < a.ranges; r++) {
            steady_multiply<SHAPE, bf16>(ring, rest, a, at,
                                         steady_first(a, r + 1) - steady_first(a, r), range);
#pragma unroll
            for (int i = 0; i < SHAPE::rows / 2; i++)
                sums[i] = r == 0 ? range[i] : sums[i] + range[i];
        }
    } else {
        steady_multiply<SHAPE, bf16>(ring, rest, a, at, part.to - part.from, sums);
    }
}

#endif
#endif
