/*
 * prefill_wgmma.cuh - inside prefill_wgmma.cu: the pipeline of keys and values, and its producers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_PREFILL_WGMMA_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_PREFILL_WGMMA_CUH

#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/attention/f16_warp.cuh"
#include "kernels/cuda/ptx/tma.cuh"
#include "kernels/cuda/ptx/wgmma_f16.cuh"

enum {
    TEAM = 128, /* threads of a warpgroup */
    TEAMS = 2,  /* consumer warpgroups */
    THREADS = (1 + TEAMS) * TEAM,
    QUERIES = 64 * TEAMS,
    KEYS = 128,            /* keys per tile */
    PANEL = 128 * KEYS,    /* bytes: 64 elements of each row of a tile, or of the queries */
    SLOTS = 4,             /* pipeline stages: keys, values, keys, values */
    AHEAD = 2,             /* stages with copies in flight */
    RAW_SLOTS = AHEAD + 1, /* stages of the int8 pipeline */
    LOADER_REGISTERS = 56,
    TEAM_REGISTERS = 224
};

/* Shared memory; `quantized` is a dummy if the cache holds f16. */
template <int width, bool codes> struct rooms {
    static constexpr int bytes = width / 64 * PANEL;
    uint8_t query[bytes], slot[SLOTS][bytes];
    uint8_t code[codes ? RAW_SLOTS : 1][codes ? KEYS * width : 16];
    float scale[codes ? RAW_SLOTS : 1][codes ? KEYS : 4];
    uint64_t full[SLOTS], empty[SLOTS], asked;
};

#ifdef FT_HAS_WGMMA

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* Work of a CTA. */
typedef struct work {
    ft_attend_task task;
    int head, kv_head;
    int first, last; /* keys visible to any row; `first` is a multiple of KEYS */
} work;

static __device__ __forceinline__ int tiles_of(const work &w)
{
    return (w.last - w.first) / KEYS + 1;
}

/* Offset of 16-byte chunk `chunk` of row `row` in the panels. */
static __device__ __forceinline__ int chunk_offset(int row, int chunk)
{
    return chunk / 8 * PANEL + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

/* Row of the cache that holds a key, counted in rows of one head. */
static __device__ __forceinline__ size_t page_row(const ft_attend_job &a, const work &w, int key)
{
    return ft_cache_find(w.task.pages, (size_t) key, (size_t) w.kv_head, (size_t) a.kv_heads);
}

/*
 * Starts the copy of a tile: f16 to panels, int8 to rows of `width` bytes. Each thread copies the
 * same chunk of eight elements of several rows.
 */
template <int width, bool codes>
static __device__ __forceinline__ void copy_tile(uint8_t *to, const void *data,
                                                 const ft_attend_job &a, const work &w, int base)
{
    constexpr int pieces = width / 8, step = TEAM / pieces, bytes = codes ? 8 : 16;
    int thread = (int) threadIdx.x, piece = thread % pieces, stride = a.head_size * bytes / 8;
    bool inside = 8 * piece < a.head_size;
#pragma unroll
    for (int page = 0; page < KEYS / FT_PAGE; page++) {
        int first = base + page * FT_PAGE;
        if (first > w.last && page > 0)
            first = base; /* no row sees this page: nothing is read */
        const uint8_t *from =
            (const uint8_t *) data + page_row(a, w, first) * (size_t) stride + bytes * piece;
#pragma unroll
        for (int i = 0; i < FT_PAGE; i += step) {
            int row = page * FT_PAGE + i + thread / pieces;
            const uint8_t *source = from + (i + thread / pieces) * stride;
            bool wanted = inside && base + row <= w.last;
            if (codes)
                ft_copy_8(to + row * width + 8 * piece, source, wanted);
            else
                ft_copy_16(to + chunk_offset(row, piece), source, wanted);
        }
    }
}

/* The scales of a tile, one per thread. */
static __device__ __forceinline__ float scale_of(const float *scales, const ft_attend_job &a,
                                                 const work &w, int base)
{
    int key = base + (int) threadIdx.x;
    return key <= w.last ? scales[page_row(a, w, key)] : 0.0f;
}

/* Starts the copy of the queries. */
template <int width>
static __device__ __forceinline__ void copy_queries(uint8_t *to, const ft_attend_job &a,
                                                    const work &w)
{
    constexpr int pieces = width / 8, step = TEAM / pieces;
    int piece = (int) threadIdx.x % pieces;
    size_t stride = (size_t) (a.heads * a.head_size);
    const uint16_t *from =
        (const uint16_t *) a.q + w.task.row * stride + (size_t) (w.head * a.head_size + 8 * piece);
#pragma unroll
    for (int i = 0; i < QUERIES; i += step) {
        int row = i + (int) threadIdx.x / pieces;
        ft_copy_16(to + chunk_offset(row, piece), from + (size_t) row * stride,
                   row < w.task.rows && 8 * piece < a.head_size);
    }
}

/* ---- Producers ------------------------------------------------------------------------------ */

/* Makes this thread's writes to shared memory visible to wgmma after `barrier`. */
static __device__ __forceinline__ void publish(uint64_t *barrier)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    ft_barrier_arrive(barrier);
}

/* Starts fill i of the pipeline: the keys of a tile, then its values. */
template <int width, bool codes>
static __device__ __forceinline__ void begin_fill(uint8_t *to, const ft_attend_job &a,
                                                  const work &w, int i)
{
    copy_tile<width, codes>(to, i % 2 == 0 ? a.keys : a.values, a, w, w.first + i / 2 * KEYS);
}

/* Producer acquire: waits until the stage of fill i has been read. */
static __device__ __forceinline__ void wait_for_room(uint64_t *empty, int i)
{
    if (i >= SLOTS)
        ft_barrier_wait(&empty[i % SLOTS], (unsigned) (i / SLOTS - 1) & 1);
}

/* f16 producer: a fill completes PREFETCH fills after its copies were issued. */
template <int width>
static __device__ __forceinline__ void load_halves(rooms<width, false> *r, const ft_attend_job &a,
                                                   const work &w)
{
    int fills = 2 * tiles_of(w);
    copy_queries<width>(r->query, a, w);
    for (int i = 0; i < fills + AHEAD; i++) {
        if (i < fills) {
            wait_for_room(r->empty, i);
            begin_fill<width, false>(r->slot[i % SLOTS], a, w, i);
        }
        ft_copy_commit();
        if (i < AHEAD)
            continue;
        ft_copy_wait<AHEAD>();
        if (i == AHEAD)
            publish(&r->asked);
        publish(&r->full[(i - AHEAD) % SLOTS]);
    }
}

/* Converts a stage of int8 values to f16. */
template <int width, bool bf16>
static __device__ __forceinline__ void widen_tile(uint8_t *to, const uint8_t *codes,
                                                  const float *scale)
{
    constexpr int pieces = width / 8, step = TEAM / pieces;
    int piece = (int) threadIdx.x % pieces;
#pragma unroll 4
    for (int i = 0; i < KEYS; i += step) {
        int row = i + (int) threadIdx.x / pieces;
        uint4 halves;
        ft_scale_codes<bf16>((uint32_t *) &halves,
                             *(const uint2 *) (codes + row * width + 8 * piece), scale[row]);
        *(uint4 *) (to + chunk_offset(row, piece)) = halves;
    }
}

static __device__ __forceinline__ void meet_loaders()
{
    asm volatile("bar.sync 1, %0;" ::"r"((int) TEAM) : "memory");
}

/*
 * int8 producer: the copies of a fill and its scales are issued PREFETCH fills before the
 * conversion.
 */
template <int width, bool bf16>
static __device__ __forceinline__ void load_codes(rooms<width, true> *r, const ft_attend_job &a,
                                                  const work &w)
{
    int fills = 2 * tiles_of(w);
    copy_queries<width>(r->query, a, w);
    for (int i = -AHEAD; i < fills; i++) {
        int next = i + AHEAD;
        if (i >= 0) {
            ft_copy_wait<AHEAD - 1>();
            if (i == 0)
                publish(&r->asked);
            meet_loaders(); /* the fill is complete, and all threads have read the previous one */
        }
        if (next < fills) {
            int base = w.first + next / 2 * KEYS;
            begin_fill<width, true>(r->code[next % RAW_SLOTS], a, w, next);
            r->scale[next % RAW_SLOTS][threadIdx.x] =
                scale_of(next % 2 == 0 ? a.key_scales : a.value_scales, a, w, base);
        }
        ft_copy_commit();
        if (i < 0)
            continue;
        wait_for_room(r->empty, i);
        widen_tile<width, bf16>(r->slot[i % SLOTS], r->code[i % RAW_SLOTS],
                                r->scale[i % RAW_SLOTS]);
        publish(&r->full[i % SLOTS]);
    }
}

#endif
#endif
