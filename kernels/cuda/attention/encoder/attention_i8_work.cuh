/*
 * attention_i8_work.cuh - the work of the warp-specialized int8 attention kernel, its shared memory
 * and the barriers between its producers and its consumers.
 *
 * A work item is one head of `warpgroups` consecutive query tiles. Its tiles of one sequence are a
 * segment: they read the same keys and values. Where all sequences have as many tiles as a multiple
 * of `warpgroups`, an item is one segment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_WORK_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_WORK_CUH

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/ptx/tma.cuh"

/*
 * A CTA has one producer warpgroup and `TEAMS` teams of `WARPGROUPS` consumer warpgroups of 64
 * queries each; `CTAS` CTAs share a multiprocessor. Heads have up to `WIDTH` elements; a step is
 * `KEYS` keys. The scores of sequences of up to `RESIDENT` steps stay in registers.
 */
template <int WIDTH, int KEYS, int TEAMS, int WARPGROUPS, int CTAS = 1, int RESIDENT = 0>
struct attention_i8_shape {
    static constexpr int width = WIDTH, keys = KEYS, teams = TEAMS, warpgroups = WARPGROUPS;
    static constexpr int ctas = CTAS;
    static constexpr int consumers = TEAMS * WARPGROUPS;
    static constexpr int producer_warps = 4 / TEAMS; /* one loads, `transposers` transpose values */
    static constexpr int transposers = TEAMS == 1 ? 2 : 1;
    static constexpr int threads = 128 * (consumers + 1);
    static constexpr int consumer_registers = CTAS == 3        ? 128
                                              : CTAS == 2      ? 216
                                              : consumers <= 2 ? 232
                                              : consumers == 3 ? 160
                                                               : 112;
    static constexpr int producer_registers = CTAS == 3 || consumers > 2 ? 32 : 40;
    static constexpr int resident_tiles = RESIDENT;
    static constexpr int stages = 4;                   /* a power of two */
    static constexpr int tile_bytes = KEYS * WIDTH;    /* of keys or values */
    static constexpr int stage_bytes = 2 * tile_bytes; /* first pass: two tiles of keys; second
                                                          pass: keys and transposed values */
    static constexpr int query_bytes = FT_CUDA_QUERY_TILE * WIDTH;
    static constexpr int values_at = stages * stage_bytes;
    static constexpr int queries_at = values_at + stages * tile_bytes;
    static constexpr int barriers_at = queries_at + 2 * WARPGROUPS * query_bytes;
    static constexpr int tiles_at = barriers_at + 8 * (5 * stages + 4);
    static constexpr int team_bytes =
        (tiles_at + 2 * WARPGROUPS * (int) sizeof(ft_cuda_query_tile) + 1023) / 1024 * 1024;

    /* Bytes of shared memory for rows of output that are `row_bytes` apart. */
    static constexpr int bytes(int row_bytes)
    {
        return TEAMS * team_bytes + consumers * FT_CUDA_QUERY_TILE * row_bytes;
    }
};

typedef struct attention_i8_maps {
    CUtensorMap q, k, v;
} attention_i8_maps;

/*
 * The shared memory of a team. Stages of the pipeline are used in order; `use` counts the uses. A
 * stage is full when its keys have arrived, and empty when all consumer warps have read them.
 * Values have stages of their own, and `tile` counts tiles of values: `loaded` and `free` are the
 * barriers of values as they arrive, `transposed` tells that they are in the stage of their keys.
 * Queries and query tiles of an item have two slots.
 */
template <class SHAPE> struct attention_shared {
    uint8_t *base;

    __device__ __forceinline__ uint64_t *barrier(int kind, unsigned count) const
    {
        return (uint64_t *) (base + SHAPE::barriers_at) + kind * SHAPE::stages +
               count % SHAPE::stages;
    }
    __device__ __forceinline__ uint64_t *full(unsigned use) const
    {
        return barrier(0, use);
    }
    __device__ __forceinline__ uint64_t *empty(unsigned use) const
    {
        return barrier(1, use);
    }
    __device__ __forceinline__ uint64_t *transposed(unsigned tile) const
    {
        return barrier(2, tile);
    }
    __device__ __forceinline__ uint64_t *loaded(unsigned tile) const
    {
        return barrier(3, tile);
    }
    __device__ __forceinline__ uint64_t *free(unsigned tile) const
    {
        return barrier(4, tile);
    }
    __device__ __forceinline__ uint64_t *q_full(unsigned item) const
    {
        return barrier(5, item % 2);
    }
    __device__ __forceinline__ uint64_t *q_empty(unsigned item) const
    {
        return barrier(5, 2 + item % 2);
    }
    __device__ __forceinline__ uint8_t *keys(unsigned use) const
    {
        return base + use % SHAPE::stages * SHAPE::stage_bytes;
    }
    __device__ __forceinline__ uint8_t *transposed_values(unsigned use) const
    {
        return keys(use) + SHAPE::tile_bytes;
    }
    __device__ __forceinline__ uint8_t *values(unsigned tile) const
    {
        return base + SHAPE::values_at + tile % SHAPE::stages * SHAPE::tile_bytes;
    }
    __device__ __forceinline__ uint8_t *queries(unsigned item, int warpgroup) const
    {
        return base + SHAPE::queries_at +
               ((int) (item % 2) * SHAPE::warpgroups + warpgroup) * SHAPE::query_bytes;
    }
    __device__ __forceinline__ ft_cuda_query_tile *tiles(unsigned item) const
    {
        return (ft_cuda_query_tile *) (base + SHAPE::tiles_at) + item % 2 * SHAPE::warpgroups;
    }
    /* One thread, before all others start. */
    __device__ __forceinline__ void init() const;
};

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

template <class SHAPE> __device__ __forceinline__ void attention_shared<SHAPE>::init() const
{
    for (unsigned i = 0; i < SHAPE::stages; i++) {
        ft_mbarrier_init(full(i), 1);
        ft_mbarrier_init(empty(i), 4 * SHAPE::warpgroups);
        ft_mbarrier_init(transposed(i), SHAPE::transposers);
        ft_mbarrier_init(loaded(i), 1);
        ft_mbarrier_init(free(i), SHAPE::transposers);
    }
    for (unsigned i = 0; i < 2; i++) {
        ft_mbarrier_init(q_full(i), 1);
        ft_mbarrier_init(q_empty(i), 4 * SHAPE::warpgroups);
    }
    ft_mbarrier_fence_init();
}

/* Wait until a barrier of `stages` has completed the phase of the given use. */
template <int stages> __device__ __forceinline__ void wait_use(uint64_t *barrier, unsigned use)
{
    ft_mbarrier_wait(barrier, use / stages & 1);
}

/* Wait until the use before is over; the first one has none. */
template <int stages> __device__ __forceinline__ void wait_free(uint64_t *barrier, unsigned use)
{
    ft_mbarrier_wait(barrier, (use / stages & 1) ^ 1);
}

#endif

/* Tiles of the keys of a sequence. */
template <class SHAPE> static __device__ __forceinline__ int key_tiles(int length)
{
    return (length + SHAPE::keys - 1) / SHAPE::keys;
}

/* The segments of an item: query tiles `begin` to `end` - 1 of one sequence. */
struct attention_segments {
    const ft_cuda_query_tile *tiles;
    int count, begin, end;

    __device__ __forceinline__ attention_segments(const ft_cuda_query_tile *tiles, int count)
        : tiles(tiles), count(count), begin(0), end(0)
    {
    }
    __device__ __forceinline__ bool is_same(int a, int b) const
    {
        return tiles[a].first == tiles[b].first && tiles[a].length == tiles[b].length;
    }
    __device__ __forceinline__ bool next()
    {
        do {
            begin = end;
            if (begin >= count)
                return false;
            for (end = begin + 1; end < count && is_same(begin, end);)
                end++;
        } while (tiles[begin].length == 0);
        return true;
    }
};

#endif
