/*
 * attend_kv.cuh - shared by the kernels for attention over the KV cache: parameters, the query rows
 * of a CTA, and the keys that are visible to a row.
 *
 * The cross-attention KV of an encoder-decoder is such a cache without a causal mask.
 *
 * Every result depends on its own row and position alone. Each kernel therefore fixes the order in
 * which a row processes its keys: key tiles begin at multiples of the tile size in the sequence,
 * whatever prefill chunk the row belongs to. A tile without visible keys leaves the bits of a row
 * unchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_CUH

#include "kernels/kv_cache.h"
#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/rows.cuh"

/*
 * Queries and results are [tokens, heads * head_size]. kernels/kv_cache.h describes keys and
 * values.
 */
typedef struct ft_attend_kv_params {
    const void *q;
    size_t tokens; /* rows of q and y */
    void *y;
    const void *keys, *values;
    const float *key_scales, *value_scales; /* NULL: the cache holds float values */
    ft_dtype q_dtype, y_dtype, cache_dtype;
    int heads, kv_heads, group; /* `group` query heads share one KV head (GQA) */
    int head_size;
    int window;        /* sliding window: number of keys that a query sees; 0: all preceding keys */
    float score_scale; /* scale of the scores, times log2(e): softmax uses powers of two */
    size_t cached_rows; /* rows of one KV head: capacity of the cache in tokens, times kv_heads */

    bool non_causal;      /* cross-attention: every row sees all keys up to n_past[sequence] */
    int sequences_per_kv; /* number of consecutive sequences that read the same keys: the beams, in
                     cross-attention; otherwise 1 */

    size_t sequences;
    const int32_t *start, *n_past, *pages;
    size_t max_pages;
    size_t context; /* upper bound of the sequence lengths */

    /*
     * Beam search: `beams` consecutive sequences belong to one text. The key at a position of a
     * slot is stored in the pages of beam cache_indirection[slot * capacity + position]. NULL: in
     * the sequence's own pages.
     */
    const int32_t *cache_indirection, *slot;
    size_t beam_width, capacity;

    const ft_cuda_query_tile *blocks; /* NULL: each sequence has one row */
    size_t n_query_tiles;

    int splits_per_cta; /* splits that one CTA processes; set by decode.cu and decode_short.cu */
    int splits, head_groups; /* set by attend_kv_int8.cu: splits of the keys of a row, and groups of
                           query heads */
    float *partial;          /* partial results of the splits */
    uint32_t *split_counters; /* number of finished splits: [sequences, kv_heads, head groups] */
} ft_attend_kv_params;

/* Builds the parameters of an ATTEND_KV operation. */
ft_attend_kv_params ft_attend_kv_params_of(const ft_cuda_args *args);

/* The kernels. They return cudaErrorNotSupported for parameters that they do not support. */
int ft_cuda_attend_kv_f32(const ft_cuda_device_props *props, void *stream,
                          const ft_attend_kv_params *a);
int ft_cuda_attend_kv_decode(const ft_cuda_device_props *props, void *stream,
                             const ft_attend_kv_params *a);
int ft_cuda_attend_kv_decode_short(const ft_cuda_device_props *props, void *stream,
                                   const ft_attend_kv_params *a);
int ft_cuda_attend_kv_decode_int8(const ft_cuda_device_props *props, void *stream,
                                  const ft_attend_kv_params *a);
int ft_cuda_attend_kv_prefill_mma(const ft_cuda_device_props *props, void *stream,
                                  const ft_attend_kv_params *a);
int ft_cuda_attend_kv_prefill_wgmma(const ft_cuda_device_props *props, void *stream,
                                    const ft_attend_kv_params *a);
int ft_cuda_attend_kv_prefill_int8(const ft_cuda_device_props *props, void *stream,
                                   const ft_attend_kv_params *a);
/* The queries see at most ft_cuda_prefill_pages() pages, each counted for each of its sequences. */
int ft_cuda_attend_kv_prefill_dequantized(const ft_cuda_device_props *props, void *stream,
                                          const ft_attend_kv_params *a, void *scratch,
                                          size_t scratch_bytes);

/* Scratch bytes and counters that prefill_dequantized.cu, decode.cu and store_attend.cu need. */
size_t ft_cuda_attend_kv_prefill_scratch(const ft_limits *limits, int kv_heads, int head_size);
size_t ft_cuda_attend_kv_decode_scratch(size_t sequences, size_t context, int heads, int head_size);
size_t ft_cuda_store_attend_scratch(size_t sequences, size_t context, int heads, int head_size);
size_t ft_cuda_attend_kv_decode_counters(size_t sequences, int heads, int kv_heads);

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Consecutive query rows of one sequence. */
typedef struct ft_query_tile {
    size_t row;   /* first row, in the batch */
    int rows;     /* 0: nothing to do */
    int position; /* position of the first row in its sequence, which is the last key that this row
                     sees */
    const int32_t *pages;             /* page table of the sequence, or of its first beam */
    const int32_t *cache_indirection; /* beam that holds each key; NULL: no beam search */
} ft_query_tile;

/*
 * The rows of query tile `index`: of a->blocks if these exist, otherwise of sequence `index`.
 * A kernel may process `max_rows` rows at once, a multiple of FT_CUDA_QUERY_TILE. The tiles inside
 * such a group then have no rows.
 */
__device__ __forceinline__ ft_query_tile ft_query_tile_at(const ft_attend_kv_params &a,
                                                          size_t index,
                                                          int max_rows = FT_CUDA_QUERY_TILE)
{
    ft_query_tile query_tile = {};
    int sequence = (int) index, query = 0, first, length;
    if (a.blocks != NULL) {
        ft_cuda_query_tile queries = a.blocks[index];
        sequence = queries.sequence;
        query = queries.query;
        first = queries.first;
        length = queries.length;
    } else {
        first = a.start[index];
        length = min(a.start[index + 1] - first, 1);
    }
    if (query >= length || query % max_rows != 0)
        return query_tile;
    query_tile.row = (size_t) (first + query);
    query_tile.rows = min(length - query, max_rows);
    query_tile.position = a.non_causal ? a.n_past[sequence] : a.n_past[sequence] + query;
    if (a.cache_indirection != NULL) {
        query_tile.cache_indirection = a.cache_indirection + (size_t) a.slot[sequence] * a.capacity;
        sequence -= sequence % (int) a.beam_width;
    }
    query_tile.pages = a.pages + (size_t) sequence * a.max_pages;
    return query_tile;
}

/* Row of the cache that holds a key, counted in rows of one head. */
__device__ __forceinline__ size_t ft_cached_row(const ft_attend_kv_params &a,
                                                const ft_query_tile &query_tile, int key,
                                                int kv_head)
{
    const int32_t *pages = query_tile.pages;
    if (query_tile.cache_indirection != NULL)
        pages += (size_t) query_tile.cache_indirection[key] * a.max_pages;
    return ft_cache_token_row(pages, (size_t) key, (size_t) kv_head, (size_t) a.kv_heads);
}

/* The last key that is visible to a row of a tile. */
__device__ __forceinline__ int ft_last_visible_key(const ft_attend_kv_params &a,
                                                   const ft_query_tile &query_tile, int row)
{
    return a.non_causal ? query_tile.position : query_tile.position + row;
}

/*
 * The first key that is visible to a query whose last visible key is `position`, which usually is
 * its own.
 */
__device__ __forceinline__ int ft_first_visible_key(const ft_attend_kv_params &a, int position)
{
    return a.window > 0 ? max(position + 1 - a.window, 0) : 0;
}

/*
 * Masks the scores of 16 rows: `own` is the last visible key of the first row, `base` the first key
 * of the tile.
 */
template <int keys>
__device__ __forceinline__ void ft_mask_scores(float s[keys / 8][4], const ft_attend_kv_params &a,
                                               int last_visible, int base)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (base + keys - 1 <= last_visible && ft_first_visible_key(a, last_visible + 15) <= base)
        return;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        int last = (a.non_causal ? last_visible : last_visible + g + 8 * row) - base;
        int first = ft_first_visible_key(a, last + base) - base;
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (8 * j + 2 * t + i > last || 8 * j + 2 * t + i < first)
                    s[j][2 * row + i] = -INFINITY;
    }
}

/*
 * Maximum and sum over the lanes of a warp that hold the same columns of an mma accumulator: equal
 * t in lane 4g + t.
 */
__device__ __forceinline__ float ft_column_max(float x)
{
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

__device__ __forceinline__ float ft_column_sum(float x)
{
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

/* Dequantizes eight int8 values to f16 or bf16: four words. */
template <bool bf16>
__device__ __forceinline__ void ft_dequantize_x8(uint32_t out[4], uint2 quantized, float scale)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t word = i < 2 ? quantized.x : quantized.y;
        out[i] = ft_pack_f16x2 < bf16 ? FT_BF16
                                      : FT_F16 > (ft_unpack_i8(word, 2 * i % 4) * scale,
                                                  ft_unpack_i8(word, 2 * i % 4 + 1) * scale);
    }
}

#endif
