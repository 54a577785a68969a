/*
 * groupwise_wgmma.cuh - tile scheduling, shared memory and producers of groupwise_wgmma.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    WARPGROUP_THREADS = 128,    /* threads per warpgroup */
    WGMMA_ROW_BYTES = 128,      /* bytes: 64 columns of a token, or a contiguous piece of a panel */
    WGMMA_MAX_STAGES = 16,      /* pipeline stages, at most */
    WGMMA_MAX_CLUSTER = 8,      /* thread blocks per cluster, at most */
    WGMMA_MAX_SMEM = 226 << 10, /* shared memory per thread block, at most */
};

/*
 * A tile is 64 weight rows for each of WARPGROUPS consumer warpgroups by TOKENS; a pipeline stage
 * is a k tile. One more warpgroup is the producer and gives up registers to the consumers; all
 * registers of the SM are assigned.
 */
template <int BITS, groupwise_x_type KIND, bool STEP_SCALES, int WARPGROUPS, int TOKENS>
struct wgmma_config {
    static constexpr int bits = BITS, warpgroups = WARPGROUPS, tokens = TOKENS;
    static constexpr groupwise_x_type kind = KIND;
    static constexpr bool step_scales = STEP_SCALES;
    static constexpr int scales =
        STEP_SCALES ? GROUPWISE_TILE_K / GROUPWISE_STEP_K : 1; /* of a row and k tile */
    static constexpr int consumers = WARPGROUPS * WARPGROUP_THREADS,
                         threads = consumers + WARPGROUP_THREADS;
    static constexpr int consumer_registers = WARPGROUPS == 2 ? 232 : 160,
                         producer_registers = WARPGROUPS == 2 ? 40 : 32;
    static constexpr int weights = WARPGROUPS * 64, panels = weights / GROUPWISE_PANEL_ROWS;
    static constexpr int panel = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * bits / 8,
                         panel_rows = panel / WGMMA_ROW_BYTES;
    static constexpr int x_box = TOKENS * WGMMA_ROW_BYTES,
                         x_stage_bytes = GROUPWISE_TILE_K * 2 / WGMMA_ROW_BYTES * x_box;
    static constexpr int qweights = panels * panel,
                         scale_region = weights * 4 * scales; /* scales and zero points */
    static constexpr int barriers = 32, stage_bytes = x_stage_bytes + qweights + scale_region +
                                                      barriers; /* of a stage */
    static constexpr int m8_tiles = TOKENS / 8,
                         m8_tile_bytes = consumers * 16; /* 8-token tiles; their bytes */
    /*
     * Whether weights are double-buffered in registers: the next k tile is dequantized while one is
     * multiplied. Many accumulators leave no room for that; then the registers hold the totals of
     * `register_totals` 8-token tiles.
     */
    static constexpr bool double_buffered = TOKENS < 128;
    static constexpr int register_totals = double_buffered ? 0
                                           : BITS == 4     ? STEP_SCALES ? 11 : 12
                                                           : 6;
    /*
     * Whether split-K over a cluster is possible: with many tokens the partial sums of others would
     * leave no room for pipelines, but there are enough tiles.
     */
    static constexpr bool split_k = TOKENS < 128;
    static constexpr int max_stages =
        (WGMMA_MAX_SMEM - m8_tiles * m8_tile_bytes - 2 * (int) sizeof(uint64_t)) / stage_bytes;
    /*
     * Cost model in microseconds on an H200: a split of a thread block; and sending and receiving
     * partial sums with split-K.
     */
    static constexpr double split_time =
        WARPGROUPS == 3 ? 1.35 + 0.03 * TOKENS : 1.3 + 0.014 * TOKENS;
    static constexpr double exchange_time = 0.2 + 3e-5 * m8_tiles * m8_tile_bytes;
};

/* Launch parameters. */
typedef struct wgmma_args {
    CUtensorMap x, w[FT_CUDA_MAX_FUSED];
    groupwise_shape all;
    int first[FT_CUDA_MAX_FUSED]; /* first column tile of each linear; their number beyond the last
                                   * one */
    int token_tiles, tiles;
    int cluster_size;      /* thread blocks that share a tile: groupwise_wgmma_split_k.cuh */
    int m8_tiles_per_rank; /* 8-token tiles that each of them finishes, at most */
    int n_stages;          /* pipeline stages */
} wgmma_args;

/* ---- Host ----------------------------------------------------------------------------------- */

/* Column tiles of a linear. */
template <class CONFIG>
static inline int wgmma_column_tiles_of(const groupwise_shape &all, int linear)
{
    return (int) ft_ceil_div((size_t) all.padded_n[linear] / GROUPWISE_PANEL_ROWS, CONFIG::panels);
}

template <class CONFIG> static inline int wgmma_m8_tiles_per_rank(int cluster_size)
{
    return (CONFIG::m8_tiles + cluster_size - 1) / cluster_size;
}

/*
 * Bytes of sums: of the tile, or with split-K of a block's part of it and of two rounds of partial
 * sums.
 */
template <class CONFIG> static inline int wgmma_acc_bytes(int cluster_size)
{
    int m8_tiles = wgmma_m8_tiles_per_rank<CONFIG>(cluster_size) *
                   (cluster_size > 1 ? 2 * cluster_size + 1 : 1);
    return m8_tiles * CONFIG::m8_tile_bytes;
}

/* Pipeline stages that fit next to them. */
template <class CONFIG> static inline int wgmma_stages_of(int cluster_size)
{
    int smem_limit =
        WGMMA_MAX_SMEM - wgmma_acc_bytes<CONFIG>(cluster_size) - 2 * (int) sizeof(uint64_t);
    int n_stages = !CONFIG::split_k ? CONFIG::max_stages
                   : smem_limit < 0 ? 0
                                    : smem_limit / CONFIG::stage_bytes;
    return n_stages < WGMMA_MAX_STAGES ? n_stages : WGMMA_MAX_STAGES;
}

/* Cluster size, and estimated time of the GEMM in microseconds. */
typedef struct wgmma_cluster_plan {
    int cluster_size;
    double time;
} wgmma_cluster_plan;

/*
 * Clusters that run concurrently. Large clusters cannot be scheduled on all SMs: with thread blocks
 * that fill an SM, an H200 runs 30 of 33 clusters of four, 22 of 26 of five, 15 of 16 of eight.
 */
static inline unsigned wgmma_max_clusters(const ft_cuda_device_props *props, int cluster_size)
{
    unsigned slots = (unsigned) props->sm_count;
    return (cluster_size <= 2 ? slots : slots * 5 / 6) / (unsigned) cluster_size;
}

/* The cluster size with the shortest time. */
template <class CONFIG>
static inline wgmma_cluster_plan wgmma_cluster_plan_of(const ft_cuda_device_props *props,
                                                       const ft_cuda_groupwise_args *p)
{
    static const int cluster_sizes[] = { 1, 2, 3, 4, 5, 8 };
    groupwise_shape all = groupwise_shape_of(p);
    int tiles = 0;
    for (int i = 0; i < p->n_linears; i++)
        tiles += wgmma_column_tiles_of<CONFIG>(all, i) * (int) ft_ceil_div(p->m, CONFIG::tokens);
    wgmma_cluster_plan best = {};
    for (int cluster_size : cluster_sizes) {
        int share = (all.splits + cluster_size - 1) / cluster_size;
        double split_us = CONFIG::split_time + (cluster_size > 1 ? CONFIG::exchange_time : 0.0);
        double time =
            ft_ceil_div((size_t) tiles, wgmma_max_clusters(props, cluster_size)) * share * split_us;
        bool fits = CONFIG::split_k && cluster_size <= all.splits &&
                    wgmma_stages_of<CONFIG>(cluster_size) >= 3;
        if (cluster_size == 1 || (fits && time < best.time))
            best = { cluster_size, time };
    }
    return best;
}

template <class CONFIG>
static inline int wgmma_args_init(wgmma_args *a, const ft_cuda_device_props *props,
                                  const ft_cuda_groupwise_args *p)
{
    *a = (wgmma_args){};
    a->all = groupwise_shape_of(p);
    a->token_tiles = (int) ft_ceil_div(p->m, CONFIG::tokens);
    int columns = 0, status = ft_tma_map_2d(&a->x, p->x, p->m, 2 * p->k, CONFIG::tokens);
    for (int i = 0; i < FT_CUDA_MAX_FUSED; i++) {
        a->first[i] = columns;
        if (i >= p->n_linears || status != 0)
            continue;
        size_t panels = (size_t) a->all.padded_n[i] / GROUPWISE_PANEL_ROWS;
        size_t bytes = (size_t) a->all.panel_bytes;
        cuuint64_t size[3] = { WGMMA_ROW_BYTES, bytes / WGMMA_ROW_BYTES, panels };
        cuuint64_t strides[2] = { WGMMA_ROW_BYTES, bytes };
        cuuint32_t box[3] = { WGMMA_ROW_BYTES, CONFIG::panel_rows, CONFIG::panels };
        status = ft_tma_map_u8(&a->w[i], p->linear[i].w, 3, size, strides, box);
        columns += wgmma_column_tiles_of<CONFIG>(a->all, i);
    }
    a->tiles = a->token_tiles * columns;
    a->cluster_size = wgmma_cluster_plan_of<CONFIG>(props, p).cluster_size;
    a->m8_tiles_per_rank = wgmma_m8_tiles_per_rank<CONFIG>(a->cluster_size);
    a->n_stages = wgmma_stages_of<CONFIG>(a->cluster_size);
    return status;
}

template <class CONFIG> static inline size_t wgmma_shared_bytes(const wgmma_args *a)
{
    return (size_t) a->n_stages * CONFIG::stage_bytes +
           (size_t) wgmma_acc_bytes<CONFIG>(a->cluster_size) + 2 * sizeof(uint64_t);
}

#ifdef FT_HAS_WGMMA

/* ---- Tile scheduling ------------------------------------------------------------------------ */

/* A tile: its linear, first panel there, and first token. */
typedef struct wgmma_tile {
    int linear, panel, token;
} wgmma_tile;

/* Consecutive tiles share weights. */
template <class CONFIG>
__device__ __forceinline__ wgmma_tile wgmma_tile_of(const wgmma_args &a, int number)
{
    int panels = number / a.token_tiles;
    wgmma_tile tile = {};
    tile.token = (number - panels * a.token_tiles) * CONFIG::tokens;
#pragma unroll
    for (int i = 1; i < FT_CUDA_MAX_FUSED; i++)
        tile.linear = panels >= a.first[i] ? i : tile.linear;
    tile.panel = (panels - a.first[tile.linear]) * CONFIG::panels;
    return tile;
}

/*
 * A thread block's iteration over its tiles and the k tiles of each: all splits, or those of its
 * rank.
 */
template <class CONFIG> struct wgmma_tile_scheduler {
    const wgmma_args &a;
    int rank, number, stride, column;
    wgmma_tile tile;

    __device__ __forceinline__ explicit wgmma_tile_scheduler(const wgmma_args &a)
        : a(a), rank(0), number((int) blockIdx.x), stride((int) gridDim.x)
    {
        if (CONFIG::split_k) {
            number = (int) blockIdx.x / a.cluster_size;
            rank = (int) blockIdx.x - number * a.cluster_size;
            stride = (int) gridDim.x / a.cluster_size;
        }
        column = rank * GROUPWISE_SPLIT_K;
        tile = wgmma_tile_of<CONFIG>(a, number);
    }
    /* K tiles per tile. */
    __device__ __forceinline__ int k_tiles() const
    {
        int all = a.all.k / GROUPWISE_TILE_K, per = GROUPWISE_SPLIT_K / GROUPWISE_TILE_K;
        if (!CONFIG::split_k)
            return all;
        int last = (a.all.splits - 1) / a.cluster_size * a.cluster_size +
                   rank; /* split, or beyond the end */
        int k_tiles_before = last / a.cluster_size * per, rest = all - last * per;
        return k_tiles_before + (rest < 0 ? 0 : rest < per ? rest : per);
    }
    /* K tiles of all tiles. */
    __device__ __forceinline__ int total_k_tiles() const
    {
        return (a.tiles - number + stride - 1) / stride * k_tiles();
    }
    /* The next k tile of the tile. */
    __device__ __forceinline__ void advance()
    {
        column += GROUPWISE_TILE_K;
        if (CONFIG::split_k && column % GROUPWISE_SPLIT_K == 0)
            column += (a.cluster_size - 1) * GROUPWISE_SPLIT_K;
    }
    __device__ __forceinline__ bool ends() const
    {
        return column >= a.all.k;
    }
    __device__ __forceinline__ bool is_done() const
    {
        return number >= a.tiles;
    }
    __device__ __forceinline__ void next_tile()
    {
        number += stride;
        column = rank * GROUPWISE_SPLIT_K;
        if (!is_done())
            tile = wgmma_tile_of<CONFIG>(a, number);
    }
};

/* Pipeline stages: a compile-time constant without split-K. */
template <class CONFIG> __device__ __forceinline__ int wgmma_stages(const wgmma_args &a)
{
    return CONFIG::split_k ? a.n_stages : CONFIG::max_stages;
}

/*
 * Shared memory of a thread block: stages of x, of weights, of scales and zero points; sums;
 * barriers.
 */
template <class CONFIG> struct wgmma_smem {
    char *at;
    const wgmma_args &a;

    __device__ __forceinline__ int n_stages() const
    {
        return wgmma_stages<CONFIG>(a);
    }
    __device__ __forceinline__ char *scale_region() const
    {
        return at + n_stages() * (CONFIG::x_stage_bytes + CONFIG::qweights);
    }
    /* Private to each thread: the next one is CONFIG::consumers further. */
    __device__ __forceinline__ float4 *totals() const
    {
        return (float4 *) (scale_region() + n_stages() * CONFIG::scale_region) + threadIdx.x;
    }
    __device__ __forceinline__ char *barriers() const
    {
        int m8_tiles = !CONFIG::split_k     ? CONFIG::m8_tiles
                       : a.cluster_size > 1 ? a.m8_tiles_per_rank * (2 * a.cluster_size + 1)
                                            : a.m8_tiles_per_rank;
        return scale_region() + n_stages() * CONFIG::scale_region +
               m8_tiles * CONFIG::m8_tile_bytes;
    }
    __device__ __forceinline__ ft_pipeline x() const
    {
        return ft_pipeline(barriers(), n_stages());
    }
    __device__ __forceinline__ ft_pipeline qweights() const
    {
        return ft_pipeline(barriers() + n_stages() * 16, n_stages());
    }
    /* Of partial sums from other thread blocks, two. */
    __device__ __forceinline__ uint64_t *partial_barriers() const
    {
        return (uint64_t *) (barriers() + n_stages() * CONFIG::barriers);
    }
    __device__ __forceinline__ char *x_of(const ft_pipeline &pipeline) const
    {
        return at + pipeline.stage_index * CONFIG::x_stage_bytes;
    }
    __device__ __forceinline__ char *qweights_of(const ft_pipeline &pipeline) const
    {
        return at + n_stages() * CONFIG::x_stage_bytes + pipeline.stage_index * CONFIG::qweights;
    }
    __device__ __forceinline__ char *scales_of(const ft_pipeline &pipeline) const
    {
        return scale_region() + pipeline.stage_index * CONFIG::scale_region;
    }
    __device__ __forceinline__ char *zeros_of(const ft_pipeline &pipeline) const
    {
        return scales_of(pipeline) + 2 * CONFIG::scales * CONFIG::weights;
    }
};

/* ---- Producers: two threads ----------------------------------------------------------------- */

/* One loads weights, which do not depend on the predecessor. */
template <class CONFIG>
__device__ __forceinline__ void wgmma_produce_weights(const wgmma_smem<CONFIG> &s,
                                                      const ft_cuda_groupwise_args &p,
                                                      const wgmma_args &a)
{
    auto pipeline = s.qweights();
    for (wgmma_tile_scheduler<CONFIG> scheduler(a); !scheduler.is_done(); scheduler.next_tile()) {
        const ft_cuda_groupwise_linear &linear = p.linear[scheduler.tile.linear];
        int padded = a.all.padded_n[scheduler.tile.linear],
            row = scheduler.tile.panel * GROUPWISE_PANEL_ROWS;
        int rows = padded - row < CONFIG::weights ? padded - row : CONFIG::weights;
        int zeros = linear.zero != NULL ? rows : 0;
        for (; !scheduler.ends(); scheduler.advance(), pipeline.advance()) {
            uint64_t *full =
                pipeline.producer_acquire(CONFIG::qweights + CONFIG::scales * (2 * rows + zeros));
            ft_tma_load_3d(s.qweights_of(pipeline), &a.w[scheduler.tile.linear], full, 0,
                           scheduler.column / GROUPWISE_TILE_K * CONFIG::panel_rows,
                           scheduler.tile.panel);
#pragma unroll
            for (int i = 0; i < CONFIG::scales; i++) {
                int column = scheduler.column + i * GROUPWISE_STEP_K;
                size_t index = (size_t) groupwise_group_of(a.all, column) * padded + row;
                ft_bulk_load(s.scales_of(pipeline) + 2 * i * CONFIG::weights, linear.scale + index,
                             2 * rows, full);
                if (zeros > 0)
                    ft_bulk_load(s.zeros_of(pipeline) + i * CONFIG::weights, linear.zero + index,
                                 zeros, full);
            }
        }
    }
}

template <class CONFIG>
__device__ __forceinline__ void wgmma_produce_tokens(const wgmma_smem<CONFIG> &s,
                                                     const wgmma_args &a)
{
    auto pipeline = s.x();
    ft_pdl_wait();
    for (wgmma_tile_scheduler<CONFIG> scheduler(a); !scheduler.is_done(); scheduler.next_tile())
        for (; !scheduler.ends(); scheduler.advance(), pipeline.advance()) {
            uint64_t *full = pipeline.producer_acquire(CONFIG::x_stage_bytes);
#pragma unroll
            for (int i = 0; i < CONFIG::x_stage_bytes / CONFIG::x_box; i++)
                ft_tma_load_2d(s.x_of(pipeline) + i * CONFIG::x_box, &a.x, full,
                               scheduler.tile.token, 2 * scheduler.column + i * WGMMA_ROW_BYTES);
        }
    ft_pdl_launch_dependents();
}

#endif

#endif
