/*
 * gemm_wgmma_few.cu - the int8 product of sm_90a for few tokens, where time is reading weights.
 *
 * A tile is 64 or 128 tokens by 64 to 192 weights.  Small tiles are many, so that all
 * multiprocessors read; large ones read less of x, which every tile needs whole and which comes
 * through the same second-level cache.  Where tiles are too few, a cluster of 2 or 4 blocks shares
 * one: each adds up its part of k, then sends every other block the sums that it is to finish.
 * Sums are whole numbers, so no bit depends on how k was cut.
 *
 * Of small tiles nobody waits for the whole cluster: a block is ready when what it needs has
 * arrived, and leaves then.  The sums of large ones have no room of their own: they are sent into
 * the ring, when all blocks have read theirs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm_wgmma_floats.cuh"
#include "kernels/cuda/gemm_wgmma_kernels.h"

enum {
    STAGE = 128, /* k of a stage */
    UNIT = 8,    /* sums of a lane that are neighbours */
};

/*
 * Of TEAMS x 64 tokens by COLS weights; BLOCKS share one.  DEEP: one block on a multiprocessor,
 * with a ring of twice the size; where two fit, the blocks of a small launch are put on half of the
 * multiprocessors, while those of the launch before still run on the others.
 */
template <int TEAMS_, int COLS_, int BLOCKS_, bool DEEP> struct few_shape {
    static constexpr int teams = TEAMS_, cols = COLS_, blocks = BLOCKS_;
    static constexpr int rows = 64 * teams, workers = WGMMA_TEAM * teams;
    static constexpr int threads = workers + 64; /* two warps load */
    static constexpr int beside = DEEP ? 1 : 2;  /* blocks on a multiprocessor */
    static constexpr int stages = (DEEP ? 200 : 100) * 1024 / ((rows + cols) * STAGE);
    static constexpr int units = cols / 32 * 2; /* of a lane; unit 2j + h is columns */
    static constexpr int own = units / blocks;  /* 32j + 8t .., row g + 8h */
    static constexpr bool apart = cols == 64;   /* sums have their own room */
    static_assert(units % blocks == 0, "each block finishes as many");
};

/* What the other blocks of a cluster send to one. */
template <class SHAPE> struct few_sums {
    static constexpr int others = SHAPE::blocks > 1 ? SHAPE::blocks - 1 : 1;
    static constexpr int each = SHAPE::blocks > 1 ? SHAPE::own *UNIT / 4 : 1;
    int4 from[others][each][SHAPE::workers];
};

template <class SHAPE> struct few_ring {
    int8_t x[SHAPE::stages][SHAPE::rows * STAGE], w[SHAPE::stages][SHAPE::cols * STAGE];
};

template <class SHAPE, bool APART = SHAPE::apart> struct few_room {
    few_ring<SHAPE> ring;
    few_sums<SHAPE> sums;
};

template <class SHAPE> struct few_room<SHAPE, false> {
    union {
        few_ring<SHAPE> ring;
        few_sums<SHAPE> sums;
    };
};

template <class SHAPE> struct few_shared {
    few_room<SHAPE> room;
    wgmma_columns<SHAPE::cols> columns;
    uint64_t full[SHAPE::stages], empty[SHAPE::stages], arrived; /* all sums */
};

#ifdef FT_HAS_WGMMA

/* ---- Clusters ------------------------------------------------------------------------------- */

/* What stands at `own` in this block's shared memory, in that of another. */
__device__ __forceinline__ uint32_t there(const void *own, int block)
{
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(ft_shared_address(own)), "r"(block));
    return address;
}

/* To the same place in another block; its bytes count on the barrier there. */
__device__ __forceinline__ void send(const int4 *place, const uint64_t *barrier, int block, int4 v)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(there(place, block)),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(there(barrier, block))
                 : "memory");
}

/* ---- Loading and multiplying ---------------------------------------------------------------- */

/* Stages first .. first + steps of the tile: of its weights by one thread, of x by another. */
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
            ft_load_weights(s.room.ring.w[slot], &a.w, &s.full[slot], place.col, first + i);
        else
            ft_load_box(s.room.ring.x[slot], &a.x, &s.full[slot], place.row, (first + i) * STAGE);
    }
    if (!weights)
        ft_let_successor_begin();
}

template <class SHAPE>
__device__ __forceinline__ void multiply(few_shared<SHAPE> &s, int team, int steps,
                                         int32_t (&sums)[SHAPE::cols / 2])
{
    for (int i = 0; i < steps; i++) {
        int slot = i % SHAPE::stages;
        ft_barrier_wait(&s.full[slot], i / SHAPE::stages & 1);
        uint64_t x = ft_wgmma_operand(s.room.ring.x[slot] + team * (64 * STAGE));
        uint64_t w = ft_wgmma_operand(s.room.ring.w[slot]);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < STAGE / 32; k++)
            ft_wgmma<SHAPE::cols>(sums, x + 2 * k, w + 2 * k);
        ft_wgmma_commit();
        ft_wgmma_wait<0>(); /* to multiply takes less time than to load: nothing is gained later */
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&s.empty[slot]);
    }
    ft_wgmma_settle(sums);
}

/* ---- Adding up and finishing ---------------------------------------------------------------- */

/* The sums of unit u, neighbouring columns. */
template <int N>
__device__ __forceinline__ void unit_of(int32_t (&unit)[UNIT], const int32_t (&sums)[N], int u)
{
#pragma unroll
    for (int i = 0; i < UNIT; i++)
        unit[i] = sums[16 * (u / 2) + i / 2 * 4 + u % 2 * 2 + i % 2];
}

/*
 * Block b finishes SHAPE::own units from b * SHAPE::own on; `own` are the whole cluster's sums.
 * Blocks a and b know each other as number (a ^ b) - 1.
 */
template <class SHAPE>
__device__ __forceinline__ void exchange(few_shared<SHAPE> &s, int block,
                                         const int32_t (&sums)[SHAPE::cols / 2],
                                         int32_t (&own)[SHAPE::own][UNIT])
{
    constexpr int mine = SHAPE::own;
#pragma unroll
    for (int u = 0; u < SHAPE::units; u++) {
        int32_t unit[UNIT];
        unit_of(unit, sums, u);
        if (u / mine == block) {
#pragma unroll
            for (int i = 0; i < UNIT; i++)
                own[u % mine][i] = unit[i];
        } else {
            for (int i = 0; i < 2; i++)
                send(&s.room.sums.from[(u / mine ^ block) - 1][u % mine * 2 + i][threadIdx.x],
                     &s.arrived, u / mine,
                     { unit[4 * i], unit[4 * i + 1], unit[4 * i + 2], unit[4 * i + 3] });
        }
    }
    if (SHAPE::blocks > 1)
        ft_barrier_wait(&s.arrived, 0);
#pragma unroll
    for (int other = 1; other < SHAPE::blocks; other++)
#pragma unroll
        for (int i = 0; i < mine * 2; i++) {
            int4 v = s.room.sums.from[other - 1][i][threadIdx.x];
            own[i / 2][i % 2 * 4] += v.x;
            own[i / 2][i % 2 * 4 + 1] += v.y;
            own[i / 2][i % 2 * 4 + 2] += v.z;
            own[i / 2][i % 2 * 4 + 3] += v.w;
        }
}

/* The residual of a unit, fetched while the tile is multiplied. */
template <typename Y> struct few_added {
    static constexpr int each = UNIT * sizeof(Y) / 16;
    uint4 v[each > 0 ? each : 1];

    __device__ __forceinline__ void fetch(const wgmma_args &a, int row, int col, bool inside)
    {
#pragma unroll
        for (int i = 0; i < each; i++)
            v[i] =
                wgmma_fetch((const uint4 *) ((const Y *) a.residual + (size_t) row * a.n + col) + i,
                            inside && a.residual != NULL);
    }
    __device__ __forceinline__ void add(float (&value)[2][4]) const
    {
        if constexpr (each > 0) {
            wgmma_add(value[0], (const Y *) v);
            wgmma_add(value[1], (const Y *) v + 4);
        }
    }
};

template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(few_shared<SHAPE> &s, const wgmma_args &a,
                                     const wgmma_place &place, int block, int steps)
{
    constexpr int mine = SHAPE::own;
    constexpr bool adds = sizeof(Y) > 1;
    int32_t sums[SHAPE::cols / 2] = {}, own[mine][UNIT];
    int team = threadIdx.x / WGMMA_TEAM, first_row = place.row + team * 64 + wgmma_lane_row();
    few_added<Y> added[adds ? mine : 1];
    float row_scale[mine];
    wgmma_columns_ahead<SHAPE::cols> columns(a, place);
    ft_wait_for_predecessor();
#pragma unroll
    for (int i = 0; i < mine; i++) {
        int u = block * mine + i, row = first_row + u % 2 * 8;
        int col = place.col + u / 2 * 32 + wgmma_lane_col();
        if (adds)
            added[i].fetch(a, row, col, row < a.m && col < wgmma_end(a, place));
        if (EPILOGUE == FT_EPILOGUE_ROWS)
            row_scale[i] = wgmma_fetch_scale(a.x_scales + row, row < a.m);
    }
    if (team == 0)
        columns.keep(s.columns, a);
    wgmma_sync(3, SHAPE::workers);
    multiply(s, team, steps, sums);
    if (SHAPE::blocks > 1)
        ft_cluster_wait(); /* all blocks have begun */
    if (SHAPE::blocks > 1 && !SHAPE::apart) {
        ft_cluster_arrive();
        ft_cluster_wait(); /* all have read their rings */
    }
    exchange<SHAPE>(s, block, sums, own);
#pragma unroll
    for (int i = 0; i < mine; i++) {
        int u = block * mine + i, row = first_row + u % 2 * 8;
        int right = u / 2 * 32 + wgmma_lane_col(), col = place.col + right;
        float value[2][4];
#pragma unroll
        for (int e = 0; e < UNIT; e++) {
            float scale = s.columns.scale[right + e];
            if (EPILOGUE == FT_EPILOGUE_ROWS)
                scale = row_scale[i] * scale;
            value[e / 4][e % 4] =
                ft_finish<EPILOGUE>(own[i][e], scale, s.columns.bias[right + e], FT_ACT_NONE);
        }
        if (adds && a.residual != NULL)
            added[i].add(value);
        size_t width = (size_t) (wgmma_end(a, place) - wgmma_first(a, place));
        Y *y = (Y *) a.y[place.which] + row * width + (col - wgmma_first(a, place));
        if (row < a.m && col < wgmma_end(a, place))
            wgmma_store_eight(y, value, a.y_inverse[place.which]);
    }
}
#endif

/* grid = tiles x blocks, in clusters of blocks; blockDim.x = SHAPE::threads. */
template <class SHAPE, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::beside)
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
            ft_barrier_expect(&s.arrived, sizeof s.room.sums);
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
        if (blocks > 1 && !SHAPE::apart) {
            ft_cluster_arrive();
            ft_cluster_wait();
        }
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
    return ft_launch(kernel, dim3((unsigned) (a.tiles * SHAPE::blocks)), dim3(SHAPE::threads),
                     bytes, stream, chip->overlaps, SHAPE::blocks, a);
}

template <class SHAPE>
static int launch_any(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return wgmma_by_kind(p, [=](auto kind) {
        return launch<SHAPE, kind.epilogue, typename decltype(kind)::y>(chip, stream, p);
    });
}

/* Tiles that are there for floats only. */
template <class SHAPE>
static int launch_floats(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return wgmma_by_kind(p, [=](auto kind) {
        typedef typename decltype(kind)::y y;
        if constexpr (sizeof(y) == 1)
            return (int) cudaErrorInvalidValue;
        else
            return launch<SHAPE, kind.epilogue, y>(chip, stream, p);
    });
}

int ft_cuda_wgmma_few(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                      const ft_cuda_product *p)
{
    switch (tile) {
    case FT_CUDA_WGMMA_FEW:
        return launch_any<few_shape<1, 64, 1, false>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_2:
        return launch_any<few_shape<1, 64, 2, false>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_4:
        return launch_any<few_shape<1, 64, 4, false>>(chip, stream, p);
    case FT_CUDA_WGMMA_FEW_96:
        return launch_any<few_shape<1, 96, 1, false>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_64_2:
        return launch_floats<few_shape<1, 64, 2, true>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_96:
        return launch_floats<few_shape<1, 96, 1, true>>(chip, stream, p);
    case FT_CUDA_WGMMA_DEEP_128_2:
        return launch_floats<few_shape<1, 128, 2, true>>(chip, stream, p);
    case FT_CUDA_WGMMA_PAIR_128_2:
        return launch_floats<few_shape<2, 128, 2, true>>(chip, stream, p);
    default:
        return (int) cudaErrorInvalidValue;
    }
}
