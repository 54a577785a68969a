/*
 * wgmma_pipeline.cuh - producer and consumer of the TMA pipeline of the wgmma INT8 GEMM.
 *
 * A stage is 128 k of a tile's rows of x and of the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_PIPELINE_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_PIPELINE_CUH

#include "kernels/cuda/gemm/int8/wgmma_args.cuh"
#include "kernels/cuda/gemm/int8/wgmma_float_out.cuh"

/* How two consumer warpgroups share the work (wgmma_gemm.cuh). */
typedef enum wgmma_split { WGMMA_IN_TURNS, WGMMA_TOGETHER } wgmma_split;

/* A warpgroup computes HALVES x 64 tokens by COLS columns. */
template <int HALVES, int COLS, int STAGES, wgmma_split SPLIT> struct wgmma_shape {
    static constexpr int halves = HALVES, cols = COLS, stages = STAGES;
    static constexpr bool in_turns = SPLIT == WGMMA_IN_TURNS;
    static constexpr int tile_rows = (in_turns ? 64 : 128) * HALVES;
    static constexpr unsigned readers = in_turns ? 4 : 8; /* warps that read a stage */
};

/* A kernel's shared memory. */
template <class SHAPE, bool GENERAL, typename Y> struct wgmma_shared {
    static constexpr bool lined = !GENERAL && sizeof(Y) == 4;
    int8_t x[SHAPE::stages][SHAPE::tile_rows * WGMMA_STAGE];
    int8_t w[SHAPE::stages][SHAPE::cols * WGMMA_STAGE];
    wgmma_columns<SHAPE::cols> columns[2][2]; /* per warpgroup; of this tile and the previous one */
    wgmma_lines lines[lined ? 8 : 1];         /* per warp */
    int32_t sums[GENERAL ? 2 : 1][GENERAL ? 64 : 1][GENERAL ? SHAPE::cols + 4 : 4];
    uint64_t full[SHAPE::stages], empty[SHAPE::stages];
};

#ifdef FT_HAS_WGMMA

/* Pipeline state: stage index and phase parity. */
template <int STAGES> struct wgmma_position {
    int slot;
    unsigned parity;

    __device__ __forceinline__ explicit wgmma_position(int stage)
        : slot(stage % STAGES), parity(stage / STAGES & 1)
    {
    }
    __device__ __forceinline__ void advance()
    {
        if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* One thread, before all others start. */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_set_up(wgmma_shared<SHAPE, GENERAL, Y> &s,
                                             const wgmma_args &a)
{
    ft_prefetch_map(&a.x);
    ft_prefetch_map(&a.w);
    for (int i = 0; i < SHAPE::stages; i++) {
        ft_barrier_init(&s.full[i], 2);
        ft_barrier_init(&s.empty[i], SHAPE::readers);
    }
    ft_barriers_ready();
}

/*
 * Producer: one thread for x and one for the weights. Weights do not depend on the predecessor, so
 * their copies start before it ends.
 */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_load(wgmma_shared<SHAPE, GENERAL, Y> &s, const wgmma_args &a,
                                           bool weights)
{
    wgmma_position<SHAPE::stages> at(0);
    unsigned bytes = (weights ? SHAPE::cols : SHAPE::tile_rows) * WGMMA_STAGE;
    if (!weights)
        ft_wait_for_predecessor();
    for (int tile = blockIdx.x; tile < a.n_tiles; tile += gridDim.x) {
        wgmma_place place = wgmma_place_of(a, tile, SHAPE::tile_rows, SHAPE::cols);
        for (int step = 0; step < a.steps; step++, at.advance()) {
            uint64_t *full = &s.full[at.slot];
            ft_barrier_wait(&s.empty[at.slot], at.parity ^ 1);
            ft_barrier_expect(full, bytes);
            if (weights)
                ft_load_weights(s.w[at.slot], &a.w, full, place.col, step);
            else
                ft_load_box(s.x[at.slot], &a.x, full, place.row, step * WGMMA_STAGE);
        }
    }
    if (!weights)
        ft_let_successor_begin();
}

/* A lane's accumulators: HALVES blocks of 64 rows by COLS columns. */
template <class SHAPE> using wgmma_sums = int32_t[SHAPE::halves][SHAPE::cols / 2];

/* A consumer warpgroup's position in the pipeline; its rows start at `row` of a tile. */
template <class SHAPE> struct wgmma_reader {
    wgmma_position<SHAPE::stages> at;
    int row, before; /* previous stage; -1 before a tile's first k tile */

    __device__ __forceinline__ wgmma_reader(int stage, int own_row)
        : at(stage), row(own_row), before(-1)
    {
    }
    /* One k tile. The previous stage is released once this wgmma is in flight. */
    template <class SHARED>
    __device__ __forceinline__ void multiply(SHARED &s, wgmma_sums<SHAPE> &sums)
    {
        ft_barrier_wait(&s.full[at.slot], at.parity);
        uint64_t x = ft_wgmma_operand(s.x[at.slot] + row * WGMMA_STAGE);
        uint64_t w = ft_wgmma_operand(s.w[at.slot]);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < WGMMA_STAGE / 32; k++)
#pragma unroll
            for (int i = 0; i < SHAPE::halves; i++)
                ft_wgmma<SHAPE::cols>(sums[i], x + 512 * i + 2 * k, w + 2 * k,
                                      k > 0 || before >= 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        release(s);
        before = at.slot;
        at.advance();
    }
    /* After a tile's last k tile: wait for the accumulators. */
    template <class SHARED>
    __device__ __forceinline__ void settle(SHARED &s, wgmma_sums<SHAPE> &sums)
    {
        ft_wgmma_wait<0>();
        release(s);
#pragma unroll
        for (int i = 0; i < SHAPE::halves; i++)
            ft_wgmma_settle(sums[i]);
    }
    /* Release the previous stage, one arrival per warp. */
    template <class SHARED> __device__ __forceinline__ void release(SHARED &s) const
    {
        if (before >= 0 && threadIdx.x % 32 == 0)
            ft_barrier_arrive(&s.empty[before]);
    }
};

#endif
#endif
