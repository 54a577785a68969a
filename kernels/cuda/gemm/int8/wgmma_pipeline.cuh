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
#include "kernels/cuda/ptx/pipeline.cuh"

/* How two consumer warpgroups share the work (wgmma_gemm.cuh). */
typedef enum wgmma_schedule { WGMMA_PINGPONG, WGMMA_COOPERATIVE } wgmma_schedule;

/* A warpgroup computes M64_BLOCKS x 64 tokens by COLS columns. */
template <int M64_BLOCKS, int COLS, int STAGES, wgmma_schedule SPLIT> struct wgmma_tile_config {
    static constexpr int m64_blocks = M64_BLOCKS, cols = COLS, stages = STAGES;
    static constexpr bool is_pingpong = SPLIT == WGMMA_PINGPONG;
    static constexpr int tile_rows = (is_pingpong ? 64 : 128) * M64_BLOCKS;
    static constexpr unsigned consumer_warps = is_pingpong ? 4 : 8; /* warps that read a stage */
};

/* A kernel's shared memory. */
template <class SHAPE, bool GENERAL, typename Y> struct wgmma_smem {
    static constexpr bool uses_line_buffer = !GENERAL && sizeof(Y) == 4;
    int8_t x[SHAPE::stages][SHAPE::tile_rows * WGMMA_TILE_K];
    int8_t w[SHAPE::stages][SHAPE::cols * WGMMA_TILE_K];
    wgmma_col_params<SHAPE::cols> columns[2]
                                         [2]; /* per warpgroup; of this tile and the previous one */
    wgmma_line_buffer lines[uses_line_buffer ? 8 : 1]; /* per warp */
    int32_t sums[GENERAL ? 2 : 1][GENERAL ? 64 : 1][GENERAL ? SHAPE::cols + 4 : 4];
    uint64_t full[SHAPE::stages], empty[SHAPE::stages];
};

#ifdef FT_HAS_WGMMA

/* One thread, before all others start. */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_pipeline_init(wgmma_smem<SHAPE, GENERAL, Y> &s,
                                                    const wgmma_args &a)
{
    ft_tma_prefetch_map(&a.x);
    ft_tma_prefetch_map(&a.w);
    for (int i = 0; i < SHAPE::stages; i++)
        ft_pipeline_init_stage(s, i, 2, SHAPE::consumer_warps);
    ft_mbarrier_fence_init();
}

/*
 * Producer: one thread for x and one for the weights. Weights do not depend on the predecessor, so
 * their copies start before it ends.
 */
template <class SHAPE, bool GENERAL, typename Y>
__device__ __forceinline__ void wgmma_produce(wgmma_smem<SHAPE, GENERAL, Y> &s, const wgmma_args &a,
                                              bool weights)
{
    ft_pipeline_state state = { 0, 0 };
    unsigned bytes = (weights ? SHAPE::cols : SHAPE::tile_rows) * WGMMA_TILE_K;
    if (!weights)
        ft_pdl_wait();
    for (int tile = blockIdx.x; tile < a.n_tiles; tile += gridDim.x) {
        wgmma_tile_coord coord = wgmma_tile_coord_of(a, tile, SHAPE::tile_rows, SHAPE::cols);
        for (int k_tile = 0; k_tile < a.k_tiles; k_tile++, state.advance(SHAPE::stages)) {
            uint64_t *full = ft_pipeline_producer_acquire(s, state, bytes);
            if (weights)
                ft_tma_load_prepacked(s.w[state.stage_index], &a.w, full, coord.col, k_tile);
            else
                ft_tma_load_2d(s.x[state.stage_index], &a.x, full, coord.row,
                               k_tile * WGMMA_TILE_K);
        }
    }
    if (!weights)
        ft_pdl_launch_dependents();
}

/* A lane's accumulators: M64_BLOCKS blocks of 64 rows by COLS columns. */
template <class SHAPE> using wgmma_acc = int32_t[SHAPE::m64_blocks][SHAPE::cols / 2];

/* A consumer warpgroup's position in the pipeline; its rows start at `row` of a tile. */
template <class SHAPE> struct wgmma_consumer {
    ft_pipeline_state state;
    int row, prev_stage; /* previous stage; -1 before a tile's first k tile */

    __device__ __forceinline__ wgmma_consumer(int stage, int own_row)
        : state(ft_pipeline_state_after(stage, SHAPE::stages)), row(own_row), prev_stage(-1)
    {
    }
    /* One k tile. The previous stage is released once this wgmma is in flight. */
    template <class SHARED>
    __device__ __forceinline__ void multiply(SHARED &s, wgmma_acc<SHAPE> &sums)
    {
        ft_pipeline_consumer_wait(s, state);
        uint64_t x = ft_wgmma_descriptor(s.x[state.stage_index] + row * WGMMA_TILE_K);
        uint64_t w = ft_wgmma_descriptor(s.w[state.stage_index]);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < WGMMA_TILE_K / 32; k++)
#pragma unroll
            for (int i = 0; i < SHAPE::m64_blocks; i++)
                ft_wgmma_i8<SHAPE::cols>(sums[i], x + 512 * i + 2 * k, w + 2 * k,
                                         k > 0 || prev_stage >= 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        release(s);
        prev_stage = state.stage_index;
        state.advance(SHAPE::stages);
    }
    /* After a tile's last k tile: wait for the accumulators. */
    template <class SHARED>
    __device__ __forceinline__ void wait_acc(SHARED &s, wgmma_acc<SHAPE> &sums)
    {
        ft_wgmma_wait<0>();
        release(s);
#pragma unroll
        for (int i = 0; i < SHAPE::m64_blocks; i++)
            ft_wgmma_fence_acc(sums[i]);
    }
    /* Release the previous stage. */
    template <class SHARED> __device__ __forceinline__ void release(SHARED &s) const
    {
        if (prev_stage >= 0)
            ft_pipeline_consumer_release(s, prev_stage);
    }
};

#endif
#endif
