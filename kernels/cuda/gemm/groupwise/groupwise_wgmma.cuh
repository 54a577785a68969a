/*
 * groupwise_wgmma.cuh - tile scheduling, shared memory and producers of groupwise_wgmma.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_WGMMA_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    WGMMA_TEAM = 128,       /* threads per warpgroup */
    WGMMA_LINE = 128,       /* bytes: 64 columns of a token, or a contiguous piece of a panel */
    WGMMA_RUNS = 16,        /* pipeline stages, at most */
    WGMMA_RANKS = 8,        /* thread blocks per cluster, at most */
    WGMMA_ROOM = 226 << 10, /* shared memory per thread block, at most */
};

/*
 * A tile is 64 weight rows for each of TEAMS consumer warpgroups by TOKENS; a pipeline stage is a k
 * tile. One more warpgroup is the producer and gives up registers to the consumers; all registers
 * of the SM are assigned.
 */
template <int BITS, blocks_kind KIND, int TEAMS, int TOKENS> struct wgmma_form {
    static constexpr int bits = BITS, teams = TEAMS, tokens = TOKENS;
    static constexpr blocks_kind kind = KIND;
    static constexpr int workers = TEAMS * WGMMA_TEAM, threads = workers + WGMMA_TEAM;
    static constexpr int registers = TEAMS == 2 ? 232 : 160, others = TEAMS == 2 ? 40 : 32;
    static constexpr int weights = TEAMS * 64, panels = weights / BLOCKS_PANEL;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8, lines = panel / WGMMA_LINE;
    static constexpr int x_box = TOKENS * WGMMA_LINE, x_run = BLOCKS_RUN * 2 / WGMMA_LINE * x_box;
    static constexpr int codes = panels * panel, beside = weights * 4; /* scales and zero points */
    static constexpr int barriers = 32, run = x_run + codes + beside + barriers; /* of a stage */
    static constexpr int eights = TOKENS / 8, eight = workers * 16; /* 8-token tiles; their bytes */
    /*
     * Whether weights are double-buffered in registers: the next k tile is dequantized while one is
     * multiplied. Many accumulators leave no room for that; then the registers hold the totals of
     * `register_totals` 8-token tiles.
     */
    static constexpr bool ahead = TOKENS < 128;
    static constexpr int kept = ahead ? 0 : BITS == 4 ? 12 : 6;
    /*
     * Whether split-K over a cluster is possible: with many tokens the partial sums of others would
     * leave no room for pipelines, but there are enough tiles.
     */
    static constexpr bool shares = TOKENS < 128;
    static constexpr int most_runs =
        (WGMMA_ROOM - eights * eight - 2 * (int) sizeof(uint64_t)) / run;
    /*
     * Cost model in microseconds on an H200: a split of a thread block; and sending and receiving
     * partial sums with split-K.
     */
    static constexpr double stretch_time = TEAMS == 3 ? 1.35 + 0.03 * TOKENS : 1.3 + 0.014 * TOKENS;
    static constexpr double sharing_time = 0.2 + 3e-5 * eights * eight;
};

/* Launch parameters. */
typedef struct wgmma_args {
    CUtensorMap x, w[FT_CUDA_PARTS];
    blocks_shape all;
    int first[FT_CUDA_PARTS]; /* first column tile of each linear; their number beyond the last
                               * one */
    int token_tiles, tiles;
    int ranks; /* thread blocks that share a tile: groupwise_wgmma_split_k.cuh */
    int each;  /* 8-token tiles that each of them finishes, at most */
    int runs;  /* pipeline stages */
} wgmma_args;

/* ---- Host ----------------------------------------------------------------------------------- */

/* Column tiles of a linear. */
template <class FORM> static inline int wgmma_columns_of(const blocks_shape &all, int part)
{
    return (int) ft_cover((size_t) all.padded_rows[part] / BLOCKS_PANEL, FORM::panels);
}

template <class FORM> static inline int wgmma_each_of(int ranks)
{
    return (FORM::eights + ranks - 1) / ranks;
}

/*
 * Bytes of sums: of the tile, or with split-K of a block's part of it and of two rounds of partial
 * sums.
 */
template <class FORM> static inline int wgmma_sums_bytes(int ranks)
{
    int eights = wgmma_each_of<FORM>(ranks) * (ranks > 1 ? 2 * ranks + 1 : 1);
    return eights * FORM::eight;
}

/* Pipeline stages that fit next to them. */
template <class FORM> static inline int wgmma_runs_of(int ranks)
{
    int room = WGMMA_ROOM - wgmma_sums_bytes<FORM>(ranks) - 2 * (int) sizeof(uint64_t);
    int runs = !FORM::shares ? FORM::most_runs : room < 0 ? 0 : room / FORM::run;
    return runs < WGMMA_RUNS ? runs : WGMMA_RUNS;
}

/* Cluster size, and estimated time of the GEMM in microseconds. */
typedef struct wgmma_plan {
    int ranks;
    double time;
} wgmma_plan;

/*
 * Clusters that run concurrently. Large clusters cannot be scheduled on all SMs: with thread blocks
 * that fill an SM, an H200 runs 30 of 33 clusters of four, 22 of 26 of five, 15 of 16 of eight.
 */
static inline unsigned wgmma_clusters(const ft_cuda_chip *chip, int ranks)
{
    unsigned slots = (unsigned) chip->multiprocessors;
    return (ranks <= 2 ? slots : slots * 5 / 6) / (unsigned) ranks;
}

/* The cluster size with the shortest time. */
template <class FORM>
static inline wgmma_plan wgmma_plan_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    static const int some[] = { 1, 2, 3, 4, 5, 8 };
    blocks_shape all = blocks_shape_of(p);
    int tiles = 0;
    for (int i = 0; i < p->parts; i++)
        tiles += wgmma_columns_of<FORM>(all, i) * (int) ft_cover(p->m, FORM::tokens);
    wgmma_plan best = {};
    for (int ranks : some) {
        int share = (all.stretches + ranks - 1) / ranks;
        double split_us = FORM::stretch_time + (ranks > 1 ? FORM::sharing_time : 0.0);
        double time = ft_cover((size_t) tiles, wgmma_clusters(chip, ranks)) * share * split_us;
        bool fits = FORM::shares && ranks <= all.stretches && wgmma_runs_of<FORM>(ranks) >= 3;
        if (ranks == 1 || (fits && time < best.time))
            best = { ranks, time };
    }
    return best;
}

template <class FORM>
static inline int wgmma_args_init(wgmma_args *a, const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    *a = (wgmma_args){};
    a->all = blocks_shape_of(p);
    a->token_tiles = (int) ft_cover(p->m, FORM::tokens);
    int columns = 0, status = ft_map_codes(&a->x, p->x, p->m, 2 * p->k, FORM::tokens);
    for (int i = 0; i < FT_CUDA_PARTS; i++) {
        a->first[i] = columns;
        if (i >= p->parts || status != 0)
            continue;
        size_t panels = (size_t) a->all.padded_rows[i] / BLOCKS_PANEL;
        size_t bytes = (size_t) a->all.panel_bytes;
        cuuint64_t size[3] = { WGMMA_LINE, bytes / WGMMA_LINE, panels };
        cuuint64_t strides[2] = { WGMMA_LINE, bytes };
        cuuint32_t box[3] = { WGMMA_LINE, FORM::lines, FORM::panels };
        status = ft_map_bytes(&a->w[i], p->part[i].w, 3, size, strides, box);
        columns += wgmma_columns_of<FORM>(a->all, i);
    }
    a->tiles = a->token_tiles * columns;
    a->ranks = wgmma_plan_of<FORM>(chip, p).ranks;
    a->each = wgmma_each_of<FORM>(a->ranks);
    a->runs = wgmma_runs_of<FORM>(a->ranks);
    return status;
}

template <class FORM> static inline size_t wgmma_shared_bytes(const wgmma_args *a)
{
    return (size_t) a->runs * FORM::run + (size_t) wgmma_sums_bytes<FORM>(a->ranks) +
           2 * sizeof(uint64_t);
}

#ifdef FT_HAS_WGMMA

/* ---- Tile scheduling ------------------------------------------------------------------------ */

/* A tile: its linear, first panel there, and first token. */
typedef struct wgmma_tile {
    int part, panel, token;
} wgmma_tile;

/* Consecutive tiles share weights. */
template <class FORM>
__device__ __forceinline__ wgmma_tile wgmma_tile_of(const wgmma_args &a, int number)
{
    int panels = number / a.token_tiles;
    wgmma_tile tile = {};
    tile.token = (number - panels * a.token_tiles) * FORM::tokens;
#pragma unroll
    for (int i = 1; i < FT_CUDA_PARTS; i++)
        tile.part = panels >= a.first[i] ? i : tile.part;
    tile.panel = (panels - a.first[tile.part]) * FORM::panels;
    return tile;
}

/*
 * A thread block's iteration over its tiles and the k tiles of each: all splits, or those of its
 * rank.
 */
template <class FORM> struct wgmma_way {
    const wgmma_args &a;
    int rank, number, stride, column;
    wgmma_tile tile;

    __device__ __forceinline__ explicit wgmma_way(const wgmma_args &a)
        : a(a), rank(0), number((int) blockIdx.x), stride((int) gridDim.x)
    {
        if (FORM::shares) {
            number = (int) blockIdx.x / a.ranks;
            rank = (int) blockIdx.x - number * a.ranks;
            stride = (int) gridDim.x / a.ranks;
        }
        column = rank * BLOCKS_STRETCH;
        tile = wgmma_tile_of<FORM>(a, number);
    }
    /* K tiles per tile. */
    __device__ __forceinline__ int k_tiles() const
    {
        int all = a.all.k / BLOCKS_RUN, per = BLOCKS_STRETCH / BLOCKS_RUN;
        if (!FORM::shares)
            return all;
        int last = (a.all.stretches - 1) / a.ranks * a.ranks + rank; /* split, or beyond the end */
        int before = last / a.ranks * per, rest = all - last * per;
        return before + (rest < 0 ? 0 : rest < per ? rest : per);
    }
    /* K tiles of all tiles. */
    __device__ __forceinline__ int all_runs() const
    {
        return (a.tiles - number + stride - 1) / stride * k_tiles();
    }
    /* The next k tile of the tile. */
    __device__ __forceinline__ void advance()
    {
        column += BLOCKS_RUN;
        if (FORM::shares && column % BLOCKS_STRETCH == 0)
            column += (a.ranks - 1) * BLOCKS_STRETCH;
    }
    __device__ __forceinline__ bool ends() const
    {
        return column >= a.all.k;
    }
    __device__ __forceinline__ bool is_over() const
    {
        return number >= a.tiles;
    }
    __device__ __forceinline__ void next_tile()
    {
        number += stride;
        column = rank * BLOCKS_STRETCH;
        if (!is_over())
            tile = wgmma_tile_of<FORM>(a, number);
    }
};

/* Pipeline stages: a compile-time constant without split-K. */
template <class FORM> __device__ __forceinline__ int wgmma_runs(const wgmma_args &a)
{
    return FORM::shares ? a.runs : FORM::most_runs;
}

/* Pipeline of one operand: stage index and phase parity. */
template <class FORM> struct wgmma_ring {
    uint64_t *full, *empty;
    int runs, slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ wgmma_ring(char *barriers, int runs)
        : full((uint64_t *) barriers), empty(full + runs), runs(runs)
    {
    }
    /* One thread, before all others start. */
    __device__ __forceinline__ void set_up() const
    {
        for (int i = 0; i < runs; i++) {
            ft_barrier_init(&full[i], 1);
            ft_barrier_init(&empty[i], FORM::workers / 32);
        }
    }
    __device__ __forceinline__ void advance()
    {
        if (++slot == runs) {
            slot = 0;
            parity ^= 1;
        }
    }
    /* Producer: acquire the stage for so many bytes; returns its full barrier. */
    __device__ __forceinline__ uint64_t *fill(unsigned bytes) const
    {
        ft_barrier_wait(&empty[slot], parity ^ 1);
        ft_barrier_expect(&full[slot], bytes);
        return &full[slot];
    }
    __device__ __forceinline__ void wait() const
    {
        ft_barrier_wait(&full[slot], parity);
    }
    /* Whether the stage has arrived, tested long before it is needed, when the test is free. */
    __device__ __forceinline__ bool is_there() const
    {
        return ft_barrier_is_past(&full[slot], parity);
    }
    /* Release the stage; all lanes of the warp have read it. */
    __device__ __forceinline__ void release() const
    {
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&empty[slot]);
    }
};

/*
 * Shared memory of a thread block: stages of x, of weights, of scales and zero points; sums;
 * barriers.
 */
template <class FORM> struct wgmma_shared {
    char *at;
    const wgmma_args &a;

    __device__ __forceinline__ int runs() const
    {
        return wgmma_runs<FORM>(a);
    }
    __device__ __forceinline__ char *beside() const
    {
        return at + runs() * (FORM::x_run + FORM::codes);
    }
    /* Private to each thread: the next one is CONFIG::consumers further. */
    __device__ __forceinline__ float4 *totals() const
    {
        return (float4 *) (beside() + runs() * FORM::beside) + threadIdx.x;
    }
    __device__ __forceinline__ char *barriers() const
    {
        int eights = !FORM::shares ? FORM::eights
                     : a.ranks > 1 ? a.each * (2 * a.ranks + 1)
                                   : a.each;
        return beside() + runs() * FORM::beside + eights * FORM::eight;
    }
    __device__ __forceinline__ wgmma_ring<FORM> x() const
    {
        return wgmma_ring<FORM>(barriers(), runs());
    }
    __device__ __forceinline__ wgmma_ring<FORM> codes() const
    {
        return wgmma_ring<FORM>(barriers() + runs() * 16, runs());
    }
    /* Of partial sums from other thread blocks, two. */
    __device__ __forceinline__ uint64_t *arrivals() const
    {
        return (uint64_t *) (barriers() + runs() * FORM::barriers);
    }
    __device__ __forceinline__ char *x_of(const wgmma_ring<FORM> &ring) const
    {
        return at + ring.slot * FORM::x_run;
    }
    __device__ __forceinline__ char *codes_of(const wgmma_ring<FORM> &ring) const
    {
        return at + runs() * FORM::x_run + ring.slot * FORM::codes;
    }
    __device__ __forceinline__ char *scales_of(const wgmma_ring<FORM> &ring) const
    {
        return beside() + ring.slot * FORM::beside;
    }
    __device__ __forceinline__ char *zeros_of(const wgmma_ring<FORM> &ring) const
    {
        return scales_of(ring) + 2 * FORM::weights;
    }
};

/* ---- Producers: two threads ----------------------------------------------------------------- */

/* One loads weights, which do not depend on the predecessor. */
template <class FORM>
__device__ __forceinline__ void wgmma_load_weights(const wgmma_shared<FORM> &s,
                                                   const ft_cuda_blocks &p, const wgmma_args &a)
{
    auto ring = s.codes();
    for (wgmma_way<FORM> way(a); !way.is_over(); way.next_tile()) {
        const ft_cuda_blocks_part &part = p.part[way.tile.part];
        int padded = a.all.padded_rows[way.tile.part], row = way.tile.panel * BLOCKS_PANEL;
        int rows = padded - row < FORM::weights ? padded - row : FORM::weights;
        int zeros = part.zero != NULL ? rows : 0;
        for (; !way.ends(); way.advance(), ring.advance()) {
            size_t index = (size_t) blocks_group_of(a.all, way.column) * padded + row;
            uint64_t *full = ring.fill(FORM::codes + 2 * rows + zeros);
            ft_load_cube(s.codes_of(ring), &a.w[way.tile.part], full, 0,
                         way.column / BLOCKS_RUN * FORM::lines, way.tile.panel);
            ft_load_bulk(s.scales_of(ring), part.scale + index, 2 * rows, full);
            if (zeros > 0)
                ft_load_bulk(s.zeros_of(ring), part.zero + index, zeros, full);
        }
    }
}

template <class FORM>
__device__ __forceinline__ void wgmma_load_tokens(const wgmma_shared<FORM> &s, const wgmma_args &a)
{
    auto ring = s.x();
    ft_wait_for_predecessor();
    for (wgmma_way<FORM> way(a); !way.is_over(); way.next_tile())
        for (; !way.ends(); way.advance(), ring.advance()) {
            uint64_t *full = ring.fill(FORM::x_run);
#pragma unroll
            for (int i = 0; i < FORM::x_run / FORM::x_box; i++)
                ft_load_box(s.x_of(ring) + i * FORM::x_box, &a.x, full, way.tile.token,
                            2 * way.column + i * WGMMA_LINE);
        }
    ft_let_successor_begin();
}

#endif

#endif
