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

enum { STAGE = 128 }; /* k per stage */

/* 64 tokens by COLS columns; BLOCKS thread blocks split k. */
template <int COLS_, int BLOCKS_> struct few_shape {
    static constexpr int cols = COLS_, blocks = BLOCKS_;
    static constexpr int rows = 64, workers = WGMMA_TEAM;
    static constexpr int threads = workers + 64; /* two producer warps */
    static constexpr int stages = 100 * 1024 / ((rows + cols) * STAGE);
    static constexpr int units = wgmma_units_of(cols), own = units / blocks;
    static_assert(units % blocks == 0, "each block finishes as many");
};

template <class SHAPE> struct few_shared {
    int8_t x[SHAPE::stages][SHAPE::rows * STAGE], w[SHAPE::stages][SHAPE::cols * STAGE];
    wgmma_shares<SHAPE> shares;
    wgmma_columns<SHAPE::cols> columns;
    uint64_t full[SHAPE::stages], empty[SHAPE::stages], arrived; /* all partial sums */
};

#ifdef FT_HAS_WGMMA

/* ---- Producer and mainloop ------------------------------------------------------------------- */

/* k tiles first .. first + k_tiles of the tile: one thread loads weights, another x. */
template <class SHAPE>
__device__ __forceinline__ void load(few_shared<SHAPE> &s, const wgmma_args &a,
                                     const wgmma_place &place, int first, int steps, bool weights)
{
    if (!weights)
        ft_wait_for_predecessor();
    for (int i = 0; i < steps; i++) {
        int slot = i % SHAPE::stages;
        ft_barrier_wait(&s.empty[slot], i / SHAPE::stages + 1 & 1);
        ft_barrier_expect(&s.full[slot], (weights ? SHAPE::cols : a.box_rows) * STAGE);
        if (weights)
            ft_load_weights(s.w[slot], &a.w, &s.full[slot], place.col, first + i);
        else
            ft_load_box(s.x[slot], &a.x, &s.full[slot], place.row, (first + i) * STAGE);
    }
    if (!weights)
        ft_let_successor_begin();
}

template <class SHAPE>
__device__ __forceinline__ void multiply(few_shared<SHAPE> &s, int steps,
                                         int32_t (&sums)[SHAPE::cols / 2])
{
    for (int i = 0; i < steps; i++) {
        int slot = i % SHAPE::stages;
        ft_barrier_wait(&s.full[slot], i / SHAPE::stages & 1);
        uint64_t x = ft_wgmma_operand(s.x[slot]);
        uint64_t w = ft_wgmma_operand(s.w[slot]);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < STAGE / 32; k++)
            ft_wgmma<SHAPE::cols>(sums, x + 2 * k, w + 2 * k);
        ft_wgmma_commit();
        ft_wgmma_wait<0>(); /* memory-bound: keeping a second wgmma in flight gains nothing */
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&s.empty[slot]);
    }
    ft_wgmma_settle(sums);
}

/* ---- Consumer -------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(few_shared<SHAPE> &s, const wgmma_args &a,
                                     const wgmma_place &place, int block, int steps)
{
    int32_t sums[SHAPE::cols / 2] = {}, own[SHAPE::own][WGMMA_UNIT];
    wgmma_units<SHAPE, EPILOGUE, Y> units(place, block);
    wgmma_columns_ahead<SHAPE::cols> columns(a, place);
    ft_wait_for_predecessor();
    units.fetch(a, place);
    columns.keep(s.columns, a);
    wgmma_sync(3, SHAPE::workers);
    multiply(s, steps, sums);
    if (SHAPE::blocks > 1)
        ft_cluster_wait(); /* all thread blocks have started */
    wgmma_exchange<SHAPE>(s.shares, &s.arrived, block, sums, own);
    units.finish(a, place, own, s.columns);
}
#endif

/* grid = tiles x BLOCKS, in clusters of BLOCKS; blockDim.x = SHAPE::threads. */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(SHAPE::threads, 2)
    few_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    constexpr int blocks = SHAPE::blocks;
    auto &s = *(few_shared<SHAPE> *) shared_memory;
    int block = blockIdx.x % blocks;
    wgmma_place place = wgmma_place_of(a, blockIdx.x / blocks, SHAPE::rows, SHAPE::cols);
    int first = a.steps * block / blocks, steps = a.steps * (block + 1) / blocks - first;
    if (threadIdx.x == 0) {
        ft_prefetch_map(&a.x);
        ft_prefetch_map(&a.w);
        for (int i = 0; i < SHAPE::stages; i++) {
            ft_barrier_init(&s.full[i], 2);
            ft_barrier_init(&s.empty[i], SHAPE::workers / 32);
        }
        ft_barrier_init(&s.arrived, 1);
        if (blocks > 1)
            ft_barrier_expect(&s.arrived, sizeof s.shares);
        ft_barriers_ready();
    }
    __syncthreads();
    if (blocks > 1)
        ft_cluster_begin();
    if (threadIdx.x < SHAPE::workers) {
        work<SHAPE, EPILOGUE, Y>(s, a, place, block, steps);
    } else {
        if (threadIdx.x % 32 == 0)
            load(s, a, place, first, steps, threadIdx.x == SHAPE::workers);
        __syncwarp();
        if (blocks > 1)
            ft_cluster_wait();
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    auto *kernel = few_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(few_shared<SHAPE>);
    wgmma_args a;
    int status = wgmma_args_init(&a, p, false, SHAPE::rows, SHAPE::cols);
    if (status == 0)
        status = wgmma_args_trim(&a, p);
    if (status == 0)
        status = wgmma_args_map_tiles(&a, p, SHAPE::cols);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) (a.n_tiles * SHAPE::blocks)), dim3(SHAPE::threads),
                     bytes, stream, chip->overlaps, SHAPE::blocks, a);
}

template <class SHAPE>
static int launch_any(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return wgmma_by_kind(p, [=](auto kind) {
        return launch<SHAPE, kind.epilogue, typename decltype(kind)::y>(chip, stream, p);
    });
}

int ft_cuda_wgmma_few(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                      const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_FEW:
        return launch_any<few_shape<64, 1>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_2:
        return launch_any<few_shape<64, 2>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_4:
        return launch_any<few_shape<64, 4>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_96:
        return launch_any<few_shape<96, 1>>(chip, stream, p);
    default:
        return (int) cudaErrorInvalidValue;
    }
}
