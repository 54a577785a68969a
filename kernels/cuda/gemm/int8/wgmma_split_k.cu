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
    STAGE = WGMMA_STAGE,
    SUMS = 3, /* named barrier of all consumer warps */
};

/* TEAMS x 64 tokens by COLS columns; BLOCKS thread blocks split k. */
template <int TEAMS_, int COLS_, int BLOCKS_> struct deep_shape {
    static constexpr int teams = TEAMS_, cols = COLS_, blocks = BLOCKS_;
    static constexpr int rows = 64 * teams, workers = WGMMA_TEAM * teams;
    static constexpr int threads = workers + 64; /* two producer warps */
    static constexpr int units = wgmma_units_of(cols), own = units / blocks;
    static constexpr int x_stages = teams == 1 ? 8 : cols == 96 ? 7 : cols == 128 ? 5 : 6;
    static constexpr int x_bytes = rows * STAGE, w_bytes = cols * STAGE;
    static constexpr int sent = blocks > 1 ? own *workers *WGMMA_UNIT * 4 : 0;
    static constexpr int w_stages = (222 * 1024 - sent - x_stages * x_bytes) / w_bytes;
    static constexpr int ahead = cols == 64 ? 5 : cols < 192 ? 4 : 3; /* weight stages in flight */
    static_assert(blocks <= 2 && ahead < w_stages, "as described");
};

template <int STAGES> struct deep_barriers {
    uint64_t full[STAGES], empty[STAGES];
};

template <class SHAPE> struct deep_shared {
    int8_t x[SHAPE::x_stages][SHAPE::x_bytes], w[SHAPE::w_stages][SHAPE::w_bytes];
    wgmma_shares<SHAPE> shares;
    wgmma_columns<SHAPE::cols> columns;
    deep_barriers<SHAPE::x_stages> x_ring;
    deep_barriers<SHAPE::w_stages> w_ring;
    uint64_t arrived; /* all partial sums */
};

#ifdef FT_HAS_WGMMA

/* Work of a thread block: k tiles first .. first + k_tiles of a tile. */
typedef struct deep_part {
    wgmma_place place;
    int block; /* rank among the blocks that share the tile */
    int first, steps;
} deep_part;

/* ---- Producer -------------------------------------------------------------------------------- */

template <int STAGES>
__device__ __forceinline__ void set_up_ring(deep_barriers<STAGES> &ring, int readers)
{
    for (int i = 0; i < STAGES; i++) {
        ft_barrier_init(&ring.full[i], 1);
        ft_barrier_init(&ring.empty[i], readers);
    }
}

/* One thread, before all others start. */
template <class SHAPE>
__device__ __forceinline__ void set_up(deep_shared<SHAPE> &s, const wgmma_args &a)
{
    ft_prefetch_map(&a.w);
    ft_prefetch_map(&a.x);
    set_up_ring(s.x_ring, SHAPE::workers / 32);
    set_up_ring(s.w_ring, SHAPE::workers / 32);
    ft_barrier_init(&s.arrived, 1);
    if (SHAPE::blocks > 1)
        ft_barrier_expect(&s.arrived, sizeof s.shares);
    ft_barriers_ready();
}

/* Acquire the next stage once its readers have released it; returns its full barrier. */
template <int STAGES>
__device__ __forceinline__ uint64_t *ask(deep_barriers<STAGES> &ring,
                                         const wgmma_position<STAGES> &at, unsigned bytes)
{
    ft_barrier_wait(&ring.empty[at.slot], at.parity ^ 1);
    ft_barrier_expect(&ring.full[at.slot], bytes);
    return &ring.full[at.slot];
}

/*
 * Weights of k tiles from .. to: each is requested when the one SHAPE::in_flight earlier has
 * arrived.
 */
template <class SHAPE>
__device__ __forceinline__ void load_weights(deep_shared<SHAPE> &s, const wgmma_args &a,
                                             const deep_part &part, int from, int to)
{
    wgmma_position<SHAPE::w_stages> at(from), come(max(from - SHAPE::ahead, 0));
    for (int i = from; i < to; i++, at.advance()) {
        if (i >= SHAPE::ahead) {
            ft_barrier_wait(&s.w_ring.full[come.slot], come.parity);
            come.advance();
        }
        uint64_t *full = ask(s.w_ring, at, SHAPE::w_bytes);
        ft_load_weights(s.w[at.slot], &a.w, full, part.place.col, part.first + i);
    }
}

template <class SHAPE>
__device__ __forceinline__ void load_x(deep_shared<SHAPE> &s, const wgmma_args &a,
                                       const deep_part &part)
{
    wgmma_position<SHAPE::x_stages> at(0);
    for (int i = 0; i < part.steps; i++, at.advance()) {
        uint64_t *full = ask(s.x_ring, at, (unsigned) a.box_rows * STAGE);
        ft_load_box(s.x[at.slot], &a.x, full, part.place.row, (part.first + i) * STAGE);
    }
}

/* ---- Consumer -------------------------------------------------------------------------------- */

/* A warp's position in both pipelines. */
template <class SHAPE> struct deep_reader {
    wgmma_position<SHAPE::x_stages> x;
    wgmma_position<SHAPE::w_stages> w;

    __device__ __forceinline__ deep_reader() : x(0), w(0) {}
    __device__ __forceinline__ void wait(deep_shared<SHAPE> &s) const
    {
        ft_barrier_wait(&s.w_ring.full[w.slot], w.parity);
        ft_barrier_wait(&s.x_ring.full[x.slot], x.parity);
    }
    __device__ __forceinline__ void advance()
    {
        x.advance();
        w.advance();
    }
    /* Release the stage, one arrival per warp. */
    __device__ __forceinline__ void release(deep_shared<SHAPE> &s) const
    {
        if (threadIdx.x % 32 == 0) {
            ft_barrier_arrive(&s.w_ring.empty[w.slot]);
            ft_barrier_arrive(&s.x_ring.empty[x.slot]);
        }
    }
};

/*
 * With two warpgroups a stage is released once the wgmma of the next one is in flight, which keeps
 * the tensor cores busy.
 */
template <class SHAPE>
__device__ __forceinline__ void multiply(deep_shared<SHAPE> &s, int steps,
                                         int32_t (&sums)[SHAPE::cols / 2])
{
    constexpr int behind = SHAPE::teams - 1;
    int row = (int) threadIdx.x / WGMMA_TEAM * 64;
    deep_reader<SHAPE> now, before;
    for (int i = 0; i < steps; i++) {
        now.wait(s);
        uint64_t x = ft_wgmma_operand(s.x[now.x.slot] + row * STAGE);
        uint64_t w = ft_wgmma_operand(s.w[now.w.slot]);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < STAGE / 32; k++)
            ft_wgmma<SHAPE::cols>(sums, x + 2 * k, w + 2 * k);
        ft_wgmma_commit();
        ft_wgmma_wait<behind>();
        if (behind == 0)
            now.release(s);
        else if (i > 0)
            before.release(s);
        before = now;
        now.advance();
    }
    ft_wgmma_wait<0>();
    ft_wgmma_settle(sums);
}

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(deep_shared<SHAPE> &s, const wgmma_args &a,
                                     const deep_part &part)
{
    int32_t sums[SHAPE::cols / 2] = {}, own[SHAPE::own][WGMMA_UNIT];
    wgmma_units<SHAPE, EPILOGUE, Y> units(part.place, part.block);
    wgmma_columns_ahead<SHAPE::cols> columns(a, part.place);
    ft_wait_for_predecessor();
    units.fetch(a, part.place);
    if (threadIdx.x < WGMMA_TEAM)
        columns.keep(s.columns, a);
    wgmma_sync(SUMS, SHAPE::workers);
    multiply(s, part.steps, sums);
    if (SHAPE::blocks > 1)
        ft_cluster_wait(); /* both thread blocks have started */
    wgmma_exchange<SHAPE>(s.shares, &s.arrived, part.block, sums, own);
    units.finish(a, part.place, own, s.columns);
}

template <class SHAPE> __device__ __forceinline__ deep_part part_of(const wgmma_args &a)
{
    deep_part part;
    part.block = (int) blockIdx.x % SHAPE::blocks;
    part.place = wgmma_place_of(a, (int) blockIdx.x / SHAPE::blocks, SHAPE::rows, SHAPE::cols);
    part.first = a.steps * part.block / SHAPE::blocks;
    part.steps = a.steps * (part.block + 1) / SHAPE::blocks - part.first;
    return part;
}
#endif

/* grid = tiles x BLOCKS, in clusters of BLOCKS; blockDim.x = SHAPE::threads. */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(SHAPE::threads, 1)
    deep_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    auto &s = *(deep_shared<SHAPE> *) shared_memory;
    deep_part part = part_of<SHAPE>(a);
    int begun = min(part.steps, 2); /* more would delay all other loads */
    if (threadIdx.x == SHAPE::workers) {
        set_up(s, a);
        load_weights(s, a, part, 0, begun);
    }
    __syncthreads();
    if (SHAPE::blocks > 1)
        ft_cluster_begin();
    if (threadIdx.x < SHAPE::workers) {
        work<SHAPE, EPILOGUE, Y>(s, a, part);
        return;
    }
    if (threadIdx.x == SHAPE::workers) {
        load_weights(s, a, part, begun, part.steps);
    } else if (threadIdx.x == SHAPE::workers + 32) {
        ft_wait_for_predecessor();
        load_x(s, a, part);
        ft_let_successor_begin();
    }
    __syncwarp();
    if (SHAPE::blocks > 1)
        ft_cluster_wait();
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
static int launch_kind(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    auto *kernel = deep_kernel<SHAPE, EPILOGUE, Y>;
    size_t bytes = sizeof(deep_shared<SHAPE>);
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
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return wgmma_by_kind(p, [=](auto kind) {
        typedef typename decltype(kind)::y y;
        if constexpr (sizeof(y) == 1)
            return (int) cudaErrorInvalidValue;
        else
            return launch_kind<SHAPE, kind.epilogue, y>(chip, stream, p);
    });
}

int ft_cuda_wgmma_deep(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                       const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_DEEP_64_2:
        return launch<deep_shape<1, 64, 2>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_96:
        return launch<deep_shape<1, 96, 1>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_128_2:
        return launch<deep_shape<1, 128, 2>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_192:
        return launch<deep_shape<1, 192, 1>>(chip, stream, p);
    case FT_CUDA_WGMMA_PAIR_64_2:
        return launch<deep_shape<2, 64, 2>>(chip, stream, p);
    case FT_CUDA_WGMMA_PAIR_96:
        return launch<deep_shape<2, 96, 1>>(chip, stream, p);
    case FT_CUDA_WGMMA_PAIR_128_2:
        return launch<deep_shape<2, 128, 2>>(chip, stream, p);
    case FT_CUDA_WGMMA_PAIR_192:
        return launch<deep_shape<2, 192, 1>>(chip, stream, p);
    default:
        return (int) cudaErrorInvalidValue;
    }
}
