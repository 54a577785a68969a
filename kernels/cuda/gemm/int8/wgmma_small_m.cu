/*
 * wgmma_small_m.cu - wgmma INT8 GEMM on sm_90a for few tokens, bound by reading weights.
 *
 * Tiles of 64 tokens by 64 or 96 columns are small, so that all SMs read, each for two thread
 * blocks. Where there are still too few tiles, a cluster of 2 or 4 thread blocks splits k, and each
 * block sends the others the partial sums that they finish. There is no cluster-wide barrier at the
 * end: a block exits when its own partial sums have arrived and are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "kernels/cuda/gemm/int8/wgmma_units.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"

enum { STAGE = 128 }; /* k per stage */

/* 64 tokens by COLS columns; BLOCKS thread blocks split k. */
template <int COLS_, int BLOCKS_> struct small_m_config {
    static constexpr int cols = COLS_, blocks = BLOCKS_;
    static constexpr int rows = 64, consumers = WARPGROUP_THREADS;
    static constexpr int threads = consumers + 64; /* two producer warps */
    static constexpr int stages = 100 * 1024 / ((rows + cols) * STAGE);
    static constexpr int fragments = wgmma_fragments_of(cols), owned = fragments / blocks;
    static_assert(fragments % blocks == 0, "each block finishes as many");
};

template <class SHAPE> struct small_m_smem {
    int8_t x[SHAPE::stages][SHAPE::rows * STAGE], w[SHAPE::stages][SHAPE::cols * STAGE];
    wgmma_partials<SHAPE> partials;
    wgmma_col_params<SHAPE::cols> columns;
    uint64_t full[SHAPE::stages], empty[SHAPE::stages], arrived; /* all partial sums */
};

#ifdef FT_HAS_WGMMA

/* ---- Producer and mainloop ------------------------------------------------------------------- */

/* k tiles first .. first + k_tiles of the tile: one thread loads weights, another x. */
template <class SHAPE>
__device__ __forceinline__ void load(small_m_smem<SHAPE> &s, const wgmma_args &a,
                                     const wgmma_tile_coord &coord, int first, int k_tiles,
                                     bool weights)
{
    if (!weights)
        ft_pdl_wait();
    for (int i = 0; i < k_tiles; i++) {
        ft_pipeline_state state = ft_pipeline_state_after(i, SHAPE::stages);
        uint64_t *full =
            ft_pipeline_producer_acquire(s, state, (weights ? SHAPE::cols : a.box_rows) * STAGE);
        if (weights)
            ft_tma_load_prepacked(s.w[state.stage_index], &a.w, full, coord.col, first + i);
        else
            ft_tma_load_2d(s.x[state.stage_index], &a.x, full, coord.row, (first + i) * STAGE);
    }
    if (!weights)
        ft_pdl_launch_dependents();
}

template <class SHAPE>
__device__ __forceinline__ void multiply(small_m_smem<SHAPE> &s, int k_tiles,
                                         int32_t (&sums)[SHAPE::cols / 2])
{
    for (int i = 0; i < k_tiles; i++) {
        ft_pipeline_state state = ft_pipeline_state_after(i, SHAPE::stages);
        ft_pipeline_consumer_wait(s, state);
        uint64_t x = ft_wgmma_descriptor(s.x[state.stage_index]);
        uint64_t w = ft_wgmma_descriptor(s.w[state.stage_index]);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < STAGE / 32; k++)
            ft_wgmma_i8<SHAPE::cols>(sums, x + 2 * k, w + 2 * k);
        ft_wgmma_commit();
        ft_wgmma_wait<0>(); /* memory-bound: keeping a second wgmma in flight gains nothing */
        ft_pipeline_consumer_release(s, state.stage_index);
    }
    ft_wgmma_fence_acc(sums);
}

/* ---- Consumer -------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(small_m_smem<SHAPE> &s, const wgmma_args &a,
                                     const wgmma_tile_coord &coord, int block, int k_tiles)
{
    int32_t sums[SHAPE::cols / 2] = {}, owned[SHAPE::owned][WGMMA_FRAGMENT_COLS];
    wgmma_fragments<SHAPE, EPILOGUE, Y> fragments(coord, block);
    wgmma_col_params_prefetch<SHAPE::cols> columns(a, coord);
    ft_pdl_wait();
    fragments.fetch(a, coord);
    columns.store_smem(s.columns, a);
    ft_named_barrier_sync(3, SHAPE::consumers);
    multiply(s, k_tiles, sums);
    if (SHAPE::blocks > 1)
        ft_cluster_wait(); /* all thread blocks have started */
    wgmma_reduce_scatter<SHAPE>(s.partials, &s.arrived, block, sums, owned);
    fragments.finish(a, coord, owned, s.columns);
}
#endif

/* grid = tiles x BLOCKS, in clusters of BLOCKS; blockDim.x = SHAPE::threads. */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(SHAPE::threads, 2)
    small_m_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    constexpr int blocks = SHAPE::blocks;
    auto &s = *(small_m_smem<SHAPE> *) shared_memory;
    int block = blockIdx.x % blocks;
    wgmma_tile_coord coord = wgmma_tile_coord_of(a, blockIdx.x / blocks, SHAPE::rows, SHAPE::cols);
    int first = a.k_tiles * block / blocks, k_tiles = a.k_tiles * (block + 1) / blocks - first;
    if (threadIdx.x == 0) {
        ft_tma_prefetch_map(&a.x);
        ft_tma_prefetch_map(&a.w);
        for (int i = 0; i < SHAPE::stages; i++)
            ft_pipeline_init_stage(s, i, 2, SHAPE::consumers / 32);
        ft_mbarrier_init(&s.arrived, 1);
        if (blocks > 1)
            ft_mbarrier_arrive_expect_tx(&s.arrived, sizeof s.partials);
        ft_mbarrier_fence_init();
    }
    __syncthreads();
    if (blocks > 1)
        ft_cluster_arrive_relaxed();
    if (threadIdx.x < SHAPE::consumers) {
        work<SHAPE, EPILOGUE, Y>(s, a, coord, block, k_tiles);
    } else {
        if (threadIdx.x % 32 == 0)
            load(s, a, coord, first, k_tiles, threadIdx.x == SHAPE::consumers);
        __syncwarp();
        if (blocks > 1)
            ft_cluster_wait();
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p)
{
    auto *kernel = small_m_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(small_m_smem<SHAPE>);
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
static int launch_all_epilogues(const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_gemm_args *p)
{
    return wgmma_dispatch_epilogue(p, [=](auto kind) {
        typedef typename decltype(kind)::y y;
        if constexpr (ft_epilogue_has_gelu(kind.epilogue) && sizeof(y) > 2)
            return (int) cudaErrorInvalidValue;
        else
            return launch<SHAPE, kind.epilogue, y>(props, stream, p);
    });
}

int ft_cuda_wgmma_small_m(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_gemm_args *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_SMALL_M_64:
        return launch_all_epilogues<small_m_config<64, 1>>(props, stream, p);
    case FT_CUDA_WGMMA_SMALL_M_64_SPLIT2:
        return launch_all_epilogues<small_m_config<64, 2>>(props, stream, p);
    case FT_CUDA_WGMMA_SMALL_M_64_SPLIT4:
        return launch_all_epilogues<small_m_config<64, 4>>(props, stream, p);
    case FT_CUDA_WGMMA_SMALL_M_96:
        return launch_all_epilogues<small_m_config<96, 1>>(props, stream, p);
    default:
        return (int) cudaErrorInvalidValue;
    }
}
