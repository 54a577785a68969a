/*
 * wgmma_split_k.cu - wgmma INT8 GEMM on sm_90a for up to 128 tokens and large k, as in decoders,
 * bound by reading weights from DRAM.
 *
 * One thread block per SM, whose tile is as wide as possible while all SMs have one: 64 or 128
 * tokens by 64 to 192 columns. (Every tile reads all of x through the same L2: 128 tokens by 64
 * columns load twice as many bytes of x as of weights.) Where there are too few tiles, the two
 * thread blocks of a cluster split k, and each sends the other the partial sums that it finishes.
 *
 * Weights and x have separate pipelines. That of the weights is deep, because it is filled before
 * the predecessor ends. But only a few of its stages are in flight at a time: requests beyond DRAM
 * bandwidth queue up, and x, which L2 could deliver at once, waits behind them. On an H200, between
 * copy kernels, 128 x 22016 x 4096 takes 29.4 us with three stages of 24 KB in flight, 30.2 with
 * four, 31.5 with six and 40 with one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "kernels/cuda/gemm/int8/wgmma_pipeline.cuh"
#include "kernels/cuda/gemm/int8/wgmma_units.cuh"

enum {
    STAGE = WGMMA_TILE_K,
    SUMS = 3, /* named barrier of all consumer warps */
};

/* WARPGROUPS x 64 tokens by COLS columns; BLOCKS thread blocks split k. */
template <int WARPGROUPS_, int COLS_, int BLOCKS_> struct split_k_config {
    static constexpr int warpgroups = WARPGROUPS_, cols = COLS_, blocks = BLOCKS_;
    static constexpr int rows = 64 * warpgroups, consumers = WARPGROUP_THREADS * warpgroups;
    static constexpr int threads = consumers + 64; /* two producer warps */
    static constexpr int fragments = wgmma_fragments_of(cols), owned = fragments / blocks;
    static constexpr int x_stages = warpgroups == 1 ? 8 : cols == 96 ? 7 : cols == 128 ? 5 : 6;
    static constexpr int x_bytes = rows * STAGE, w_bytes = cols * STAGE;
    static constexpr int sent = blocks > 1 ? owned *consumers *WGMMA_FRAGMENT_COLS * 4 : 0;
    static constexpr int w_stages = (222 * 1024 - sent - x_stages * x_bytes) / w_bytes;
    static constexpr int in_flight = cols == 64   ? 5
                                     : cols < 192 ? 4
                                                  : 3; /* weight stages in flight */
    static_assert(blocks <= 2 && in_flight < w_stages, "as described");
};

template <int STAGES> struct split_k_pipeline {
    uint64_t full[STAGES], empty[STAGES];
};

template <class SHAPE> struct split_k_smem {
    int8_t x[SHAPE::x_stages][SHAPE::x_bytes], w[SHAPE::w_stages][SHAPE::w_bytes];
    wgmma_partials<SHAPE> partials;
    wgmma_col_params<SHAPE::cols> columns;
    split_k_pipeline<SHAPE::x_stages> x_pipeline;
    split_k_pipeline<SHAPE::w_stages> w_pipeline;
    uint64_t arrived; /* all partial sums */
};

#ifdef FT_HAS_WGMMA

/* Work of a thread block: k tiles first .. first + k_tiles of a tile. */
typedef struct split_k_work {
    wgmma_tile_coord coord;
    int block; /* rank among the blocks that share the tile */
    int first, k_tiles;
} split_k_work;

/* ---- Producer -------------------------------------------------------------------------------- */

/* One thread, before all others start. */
template <class SHAPE>
__device__ __forceinline__ void init_pipelines(split_k_smem<SHAPE> &s, const wgmma_args &a)
{
    ft_tma_prefetch_map(&a.w);
    ft_tma_prefetch_map(&a.x);
    for (int i = 0; i < SHAPE::x_stages; i++)
        ft_pipeline_init_stage(s.x_pipeline, i, 1, SHAPE::consumers / 32);
    for (int i = 0; i < SHAPE::w_stages; i++)
        ft_pipeline_init_stage(s.w_pipeline, i, 1, SHAPE::consumers / 32);
    ft_mbarrier_init(&s.arrived, 1);
    if (SHAPE::blocks > 1)
        ft_mbarrier_arrive_expect_tx(&s.arrived, sizeof s.partials);
    ft_mbarrier_fence_init();
}

/*
 * Weights of k tiles from .. to: each is requested when the one SHAPE::in_flight earlier has
 * arrived.
 */
template <class SHAPE>
__device__ __forceinline__ void load_weights(split_k_smem<SHAPE> &s, const wgmma_args &a,
                                             const split_k_work &block_work, int from, int to)
{
    ft_pipeline_state state = ft_pipeline_state_after(from, SHAPE::w_stages);
    ft_pipeline_state arrived =
        ft_pipeline_state_after(max(from - SHAPE::in_flight, 0), SHAPE::w_stages);
    for (int i = from; i < to; i++, state.advance(SHAPE::w_stages)) {
        if (i >= SHAPE::in_flight) {
            ft_pipeline_consumer_wait(s.w_pipeline, arrived);
            arrived.advance(SHAPE::w_stages);
        }
        uint64_t *full = ft_pipeline_producer_acquire(s.w_pipeline, state, SHAPE::w_bytes);
        ft_tma_load_prepacked(s.w[state.stage_index], &a.w, full, block_work.coord.col,
                              block_work.first + i);
    }
}

template <class SHAPE>
__device__ __forceinline__ void load_x(split_k_smem<SHAPE> &s, const wgmma_args &a,
                                       const split_k_work &block_work)
{
    ft_pipeline_state state = { 0, 0 };
    for (int i = 0; i < block_work.k_tiles; i++, state.advance(SHAPE::x_stages)) {
        uint64_t *full = ft_pipeline_producer_acquire(s.x_pipeline, state, a.box_rows * STAGE);
        ft_tma_load_2d(s.x[state.stage_index], &a.x, full, block_work.coord.row,
                       (block_work.first + i) * STAGE);
    }
}

/* ---- Consumer -------------------------------------------------------------------------------- */

/* A warp's position in both pipelines. */
template <class SHAPE> struct split_k_consumer {
    ft_pipeline_state x, w;

    __device__ __forceinline__ split_k_consumer() : x{ 0, 0 }, w{ 0, 0 } {}

    __device__ __forceinline__ void wait(split_k_smem<SHAPE> &s) const
    {
        ft_pipeline_consumer_wait(s.w_pipeline, w);
        ft_pipeline_consumer_wait(s.x_pipeline, x);
    }
    __device__ __forceinline__ void advance()
    {
        x.advance(SHAPE::x_stages);
        w.advance(SHAPE::w_stages);
    }
    __device__ __forceinline__ void release(split_k_smem<SHAPE> &s) const
    {
        ft_pipeline_consumer_release(s.w_pipeline, w.stage_index);
        ft_pipeline_consumer_release(s.x_pipeline, x.stage_index);
    }
};

/*
 * With two warpgroups a stage is released once the wgmma of the next one is in flight, which keeps
 * the tensor cores busy.
 */
template <class SHAPE>
__device__ __forceinline__ void multiply(split_k_smem<SHAPE> &s, int k_tiles,
                                         int32_t (&sums)[SHAPE::cols / 2])
{
    constexpr int pending = SHAPE::warpgroups - 1;
    int row = (int) threadIdx.x / WARPGROUP_THREADS * 64;
    split_k_consumer<SHAPE> now, prev_stage;
    for (int i = 0; i < k_tiles; i++) {
        now.wait(s);
        uint64_t x = ft_wgmma_descriptor(s.x[now.x.stage_index] + row * STAGE);
        uint64_t w = ft_wgmma_descriptor(s.w[now.w.stage_index]);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < STAGE / 32; k++)
            ft_wgmma_i8<SHAPE::cols>(sums, x + 2 * k, w + 2 * k);
        ft_wgmma_commit();
        ft_wgmma_wait<pending>();
        if (pending == 0)
            now.release(s);
        else if (i > 0)
            prev_stage.release(s);
        prev_stage = now;
        now.advance();
    }
    ft_wgmma_wait<0>();
    ft_wgmma_fence_acc(sums);
}

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(split_k_smem<SHAPE> &s, const wgmma_args &a,
                                     const split_k_work &block_work)
{
    int32_t sums[SHAPE::cols / 2] = {}, owned[SHAPE::owned][WGMMA_FRAGMENT_COLS];
    wgmma_fragments<SHAPE, EPILOGUE, Y> fragments(block_work.coord, block_work.block);
    wgmma_col_params_prefetch<SHAPE::cols> columns(a, block_work.coord);
    ft_pdl_wait();
    fragments.fetch(a, block_work.coord);
    if (threadIdx.x < WARPGROUP_THREADS)
        columns.store_smem(s.columns, a);
    ft_named_barrier_sync(SUMS, SHAPE::consumers);
    multiply(s, block_work.k_tiles, sums);
    if (SHAPE::blocks > 1)
        ft_cluster_wait(); /* both thread blocks have started */
    wgmma_reduce_scatter<SHAPE>(s.partials, &s.arrived, block_work.block, sums, owned);
    fragments.finish(a, block_work.coord, owned, s.columns);
}

template <class SHAPE> __device__ __forceinline__ split_k_work work_of(const wgmma_args &a)
{
    split_k_work block_work;
    block_work.block = (int) blockIdx.x % SHAPE::blocks;
    block_work.coord =
        wgmma_tile_coord_of(a, (int) blockIdx.x / SHAPE::blocks, SHAPE::rows, SHAPE::cols);
    block_work.first = a.k_tiles * block_work.block / SHAPE::blocks;
    block_work.k_tiles = a.k_tiles * (block_work.block + 1) / SHAPE::blocks - block_work.first;
    return block_work;
}
#endif

/* grid = tiles x BLOCKS, in clusters of BLOCKS; blockDim.x = SHAPE::threads. */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(SHAPE::threads, 1)
    split_k_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    auto &s = *(split_k_smem<SHAPE> *) shared_memory;
    split_k_work block_work = work_of<SHAPE>(a);
    int prologue_k_tiles = min(block_work.k_tiles, 2); /* more would delay all other loads */
    if (threadIdx.x == SHAPE::consumers) {
        init_pipelines(s, a);
        load_weights(s, a, block_work, 0, prologue_k_tiles);
    }
    __syncthreads();
    if (SHAPE::blocks > 1)
        ft_cluster_arrive_relaxed();
    if (threadIdx.x < SHAPE::consumers) {
        work<SHAPE, EPILOGUE, Y>(s, a, block_work);
        return;
    }
    if (threadIdx.x == SHAPE::consumers) {
        load_weights(s, a, block_work, prologue_k_tiles, block_work.k_tiles);
    } else if (threadIdx.x == SHAPE::consumers + 32) {
        ft_pdl_wait();
        load_x(s, a, block_work);
        ft_pdl_launch_dependents();
    }
    __syncwarp();
    if (SHAPE::blocks > 1)
        ft_cluster_wait();
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int launch_epilogue(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_gemm_args *p)
{
    auto *kernel = split_k_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(split_k_smem<SHAPE>);
    wgmma_args a;
    int status = wgmma_args_init(&a, p, false, SHAPE::rows, SHAPE::cols);
    if (status == 0)
        status = wgmma_args_trim_box(&a, p);
    if (status == 0)
        status = wgmma_args_map_weights(&a, p, SHAPE::cols);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) (a.n_tiles * SHAPE::blocks)), dim3(SHAPE::threads),
                     bytes, stream, props->has_pdl, SHAPE::blocks, a);
}

template <class SHAPE>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p)
{
    return wgmma_dispatch_epilogue(p, [=](auto kind) {
        typedef typename decltype(kind)::y y;
        if constexpr (sizeof(y) == 1 || ft_epilogue_has_gelu(kind.epilogue))
            return (int) cudaErrorInvalidValue;
        else
            return launch_epilogue<SHAPE, kind.epilogue, y>(props, stream, p);
    });
}

int ft_cuda_wgmma_split_k(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_gemm_args *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_M64_N64_SPLIT2:
        return launch<split_k_config<1, 64, 2>>(props, stream, p);
    case FT_CUDA_WGMMA_M64_N96:
        return launch<split_k_config<1, 96, 1>>(props, stream, p);
    case FT_CUDA_WGMMA_M64_N128_SPLIT2:
        return launch<split_k_config<1, 128, 2>>(props, stream, p);
    case FT_CUDA_WGMMA_M64_N192:
        return launch<split_k_config<1, 192, 1>>(props, stream, p);
    case FT_CUDA_WGMMA_M128_N64_SPLIT2:
        return launch<split_k_config<2, 64, 2>>(props, stream, p);
    case FT_CUDA_WGMMA_M128_N96:
        return launch<split_k_config<2, 96, 1>>(props, stream, p);
    case FT_CUDA_WGMMA_M128_N128_SPLIT2:
        return launch<split_k_config<2, 128, 2>>(props, stream, p);
    case FT_CUDA_WGMMA_M128_N192:
        return launch<split_k_config<2, 192, 1>>(props, stream, p);
    default:
        return (int) cudaErrorInvalidValue;
    }
}
