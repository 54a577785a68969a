/*
 * prefill_int8.cuh - inside prefill_int8.cu: the pipeline of keys and values, and its producers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_PREFILL_INT8_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_PREFILL_INT8_CUH

#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/attention/wgmma/softmax.cuh"

enum {
    CONSUMERS = 2, /* consumer warpgroups */
    THREADS = (1 + CONSUMERS) * WARPGROUP,
    QUERIES = 64 * CONSUMERS,
    PANEL = 128 * KEYS,        /* bytes: 64 elements of each row of a tile, or of the queries */
    STAGES = 4,                /* pipeline stages: keys, values, keys, values */
    PREFETCH = 2,              /* stages with copies in flight */
    RAW_STAGES = PREFETCH + 1, /* stages of the int8 pipeline */
    PRODUCER_REGISTERS = 56,
    CONSUMER_REGISTERS = 224
};

template <int width> struct shared_storage {
    static constexpr int bytes = width / 64 * PANEL;
    uint8_t query[bytes], stage[STAGES][bytes];
    uint8_t raw[RAW_STAGES][KEYS * width];
    float scale[RAW_STAGES][KEYS];
    uint64_t full[STAGES], empty[STAGES], queries_full;
};

#ifdef FT_HAS_WGMMA

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* Work of a CTA. */
typedef struct cta_work {
    ft_query_tile query_tile;
    int head, kv_head;
    int first, last; /* keys visible to any row; `first` is a multiple of KEYS */
} cta_work;

static __device__ __forceinline__ int tile_count(const cta_work &w)
{
    return (w.last - w.first) / KEYS + 1;
}

/* Offset of 16-byte chunk `chunk` of row `row` in the panels. */
static __device__ __forceinline__ int chunk_offset(int row, int chunk)
{
    return chunk / 8 * PANEL + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

/* Row of the cache that holds a key, counted in rows of one head. */
static __device__ __forceinline__ size_t page_row(const ft_attend_kv_params &a, const cta_work &w,
                                                  int key)
{
    return ft_cache_token_row(w.query_tile.pages, (size_t) key, (size_t) w.kv_head,
                              (size_t) a.kv_heads);
}

/*
 * Starts the copy of a tile to rows of `width` bytes. Each thread copies the same chunk of eight
 * elements of several rows.
 */
template <int width>
static __device__ __forceinline__ void
copy_tile(uint8_t *to, const void *data, const ft_attend_kv_params &a, const cta_work &w, int base)
{
    constexpr int chunks = width / 8, step = WARPGROUP / chunks;
    int thread = (int) threadIdx.x, chunk8 = thread % chunks, stride = a.head_size;
    bool inside = 8 * chunk8 < a.head_size;
#pragma unroll
    for (int page = 0; page < KEYS / FT_PAGE_TOKENS; page++) {
        int first = base + page * FT_PAGE_TOKENS;
        if (first > w.last && page > 0)
            first = base; /* no row sees this page: nothing is read */
        const uint8_t *from =
            (const uint8_t *) data + page_row(a, w, first) * (size_t) stride + 8 * chunk8;
#pragma unroll
        for (int i = 0; i < FT_PAGE_TOKENS; i += step) {
            int row = page * FT_PAGE_TOKENS + i + thread / chunks;
            const uint8_t *source = from + (i + thread / chunks) * stride;
            ft_cp_async_8(to + row * width + 8 * chunk8, source, inside && base + row <= w.last);
        }
    }
}

/* The scales of a tile, one per thread. */
static __device__ __forceinline__ float scale_of(const float *scales, const ft_attend_kv_params &a,
                                                 const cta_work &w, int base)
{
    int key = base + (int) threadIdx.x;
    return key <= w.last ? scales[page_row(a, w, key)] : 0.0f;
}

/* Starts the copy of the queries. */
template <int width>
static __device__ __forceinline__ void copy_queries(uint8_t *to, const ft_attend_kv_params &a,
                                                    const cta_work &w)
{
    constexpr int chunks = width / 8, step = WARPGROUP / chunks;
    int chunk16 = (int) threadIdx.x % chunks;
    size_t stride = (size_t) (a.heads * a.head_size);
    const uint16_t *from = (const uint16_t *) a.q + w.query_tile.row * stride +
                           (size_t) (w.head * a.head_size + 8 * chunk16);
#pragma unroll
    for (int i = 0; i < QUERIES; i += step) {
        int row = i + (int) threadIdx.x / chunks;
        ft_cp_async_16(to + chunk_offset(row, chunk16), from + (size_t) row * stride,
                       row < w.query_tile.rows && 8 * chunk16 < a.head_size);
    }
}

/* ---- Producers ------------------------------------------------------------------------------ */

/* Makes this thread's writes to shared memory visible to wgmma after `barrier`. */
static __device__ __forceinline__ void fence_and_arrive(uint64_t *barrier)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    ft_mbarrier_arrive(barrier);
}

/* Starts fill i of the pipeline: the keys of a tile, then its values. */
template <int width>
static __device__ __forceinline__ void issue_fill(uint8_t *to, const ft_attend_kv_params &a,
                                                  const cta_work &w, int i)
{
    copy_tile<width>(to, i % 2 == 0 ? a.keys : a.values, a, w, w.first + i / 2 * KEYS);
}

/* Converts a stage of int8 values to f16. */
template <int width, bool bf16>
static __device__ __forceinline__ void dequantize_tile(uint8_t *to, const uint8_t *quantized,
                                                       const float *scale)
{
    constexpr int chunks = width / 8, step = WARPGROUP / chunks;
    int chunk16 = (int) threadIdx.x % chunks;
#pragma unroll 4
    for (int i = 0; i < KEYS; i += step) {
        int row = i + (int) threadIdx.x / chunks;
        uint4 f16x8;
        ft_dequantize_x8<bf16>((uint32_t *) &f16x8,
                               *(const uint2 *) (quantized + row * width + 8 * chunk16),
                               scale[row]);
        *(uint4 *) (to + chunk_offset(row, chunk16)) = f16x8;
    }
}

static __device__ __forceinline__ void sync_producers()
{
    ft_named_barrier_sync(1, WARPGROUP);
}

/*
 * The producer: the copies of a fill and its scales are issued PREFETCH fills before the
 * conversion.
 */
template <int width, bool bf16>
static __device__ __forceinline__ void produce(shared_storage<width> *r,
                                               const ft_attend_kv_params &a, const cta_work &w)
{
    int fills = 2 * tile_count(w);
    copy_queries<width>(r->query, a, w);
    for (int i = -PREFETCH; i < fills; i++) {
        int next = i + PREFETCH;
        if (i >= 0) {
            ft_cp_async_wait<PREFETCH - 1>();
            if (i == 0)
                fence_and_arrive(&r->queries_full);
            sync_producers(); /* the fill is complete, and all threads have read the previous one */
        }
        if (next < fills) {
            int base = w.first + next / 2 * KEYS;
            issue_fill<width>(r->raw[next % RAW_STAGES], a, w, next);
            r->scale[next % RAW_STAGES][threadIdx.x] =
                scale_of(next % 2 == 0 ? a.key_scales : a.value_scales, a, w, base);
        }
        ft_cp_async_commit();
        if (i < 0)
            continue;
        ft_pipeline_producer_acquire(*r, ft_pipeline_state_after(i, STAGES));
        dequantize_tile<width, bf16>(r->stage[i % STAGES], r->raw[i % RAW_STAGES],
                                     r->scale[i % RAW_STAGES]);
        fence_and_arrive(&r->full[i % STAGES]);
    }
}

#endif
#endif
