/*
 * store_attend.cuh - inside store_attend.cu: loads, rotates and places queries and the newest key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_STORE_ATTEND_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_STORE_ATTEND_CUH

#include "kernels/cuda/attention/cache/decode_load.cuh"
#include "kernels/cuda/attention/cache/store_kv.cuh"

/* Cosine and sine of the row's position, for pairs of elements half a head apart. */
template <int width> struct rope_angles {
    float cosine[width / 2], sine[width / 2];
};

/* ---- Work of a CTA -------------------------------------------------------------------------- */

/* Each sequence has one row and its own pages; blockIdx.y is the sequence. */
static __device__ __forceinline__ ft_query_tile decode_tile_of(const ft_attend_kv_params &a)
{
    ft_query_tile query_tile = {};
    int first = a.start[blockIdx.y];
    query_tile.rows = min(a.start[blockIdx.y + 1] - first, 1);
    query_tile.row = (size_t) first;
    query_tile.position = a.n_past[blockIdx.y];
    query_tile.pages = a.pages + blockIdx.y * a.max_pages;
    return query_tile;
}

/* split_range_of() for a row of few splits, with one split per CTA. */
static __device__ __forceinline__ split_range decode_split_range(const ft_attend_kv_params &a,
                                                                 int position, int size)
{
    split_range s = { size };
    s.first = ft_first_visible_key(a, position);
    s.last = position;
    s.count = position / size - s.first / size + 1;
    return s;
}

/* Index of a column's head, over all rows of the batch. */
static __device__ __forceinline__ size_t head_index(const ft_attend_kv_params &a,
                                                    const head_columns &of, int index)
{
    return (size_t) of.rows * (size_t) a.heads + (size_t) (of.kv_head * a.group + of.first + index);
}

/* ---- Chunks of eight f16 or bf16 elements --------------------------------------------------- */

/* A chunk of the lower half of a head, and its partner in the upper half. */
typedef struct rotary_chunks {
    uint4 low, high;
} rotary_chunks;

static __device__ __forceinline__ uint4 load_chunk(void *data, size_t at)
{
    return *(const uint4 *) ((const uint16_t *) data + at);
}

template <ft_dtype kv_dtype>
static __device__ __forceinline__ void unpack_chunk(float v[8], const uint4 &chunk)
{
    ft_raw_vec<8> bits = { { chunk.x, chunk.y, chunk.z, chunk.w } };
    ft_unpack_as<kv_dtype, 8>(v, bits);
}

template <ft_dtype kv_dtype> static __device__ __forceinline__ uint4 pack_chunk(const float v[8])
{
    return make_uint4(ft_pack_f16x2<kv_dtype>(v[0], v[1]), ft_pack_f16x2<kv_dtype>(v[2], v[3]),
                      ft_pack_f16x2<kv_dtype>(v[4], v[5]), ft_pack_f16x2<kv_dtype>(v[6], v[7]));
}

/* Rotates a pair as STORE_KV does; `first` is the first element of the lower chunk. */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void rotate_pair(rotary_chunks *p, const rope_angles<width> &by,
                                                   int first)
{
    rotary_halves<8> x;
    unpack_chunk<kv_dtype>(x.low, p->low);
    unpack_chunk<kv_dtype>(x.high, p->high);
    rope_rotate(&x, by.cosine + first, by.sine + first);
    p->low = pack_chunk<kv_dtype>(x.low);
    p->high = pack_chunk<kv_dtype>(x.high);
}

/* ---- Queries -------------------------------------------------------------------------------- */

/* A lane holds the chunks t, t + 4, ... of head g, including the partners. */
template <int width> struct raw_queries {
    static constexpr int pairs = width / 64;
    rotary_chunks pair[pairs];

    __device__ __forceinline__ void fetch(const store_kv_params &from, const ft_attend_kv_params &a,
                                          const head_columns &of)
    {
        int g = (int) threadIdx.x % 32 / 4;
        bool wanted = g < of.count;
        size_t at = head_index(a, of, wanted ? g : 0) * width + threadIdx.x % 4 * 8;
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            pair[i].low = pair[i].high = make_uint4(0, 0, 0, 0);
            if (wanted) {
                pair[i].low = load_chunk(from.query, at + 32 * i);
                pair[i].high = load_chunk(from.query, at + 32 * i + width / 2);
            }
        }
    }

    /* Rotates the queries and writes them in the order of load_queries(). */
    template <ft_dtype kv_dtype>
    __device__ __forceinline__ void rotate_into(uint32_t q[width / 16][2],
                                                const rope_angles<width> &by)
    {
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            rotate_pair<kv_dtype>(&pair[i], by, (int) threadIdx.x % 4 * 8 + 32 * i);
            put_chunk(q + 2 * i, pair[i].low);
            put_chunk(q + 2 * (i + pairs), pair[i].high);
        }
    }

    static __device__ __forceinline__ void put_chunk(uint32_t q[2][2], const uint4 &chunk)
    {
        q[0][0] = chunk.x;
        q[0][1] = chunk.y;
        q[1][0] = chunk.z;
        q[1][1] = chunk.w;
    }
};

/* ---- The newest key ------------------------------------------------------------------------- */

/* Where copy_keys() and copy_values() put chunk `chunk` of key `key` of a tile. */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ uint4 *key_slot(kv_tile<kv_dtype, width> *r, int key, int chunk)
{
    return &r->key[key / 8][chunk / 4][4 * (key % 8) + chunk % 4];
}

template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ uint4 *value_slot(kv_tile<kv_dtype, width> *r, int key, int chunk)
{
    static_assert(decode_traits<kv_dtype, width>::value_bytes == sizeof(uint4),
                  "value chunks have 16 bytes");
    int i = key / 16 * 4 + key % 16 / 8 * 2 + key % 2, t = key % 8 / 2;
    return (uint4 *) r->value[i][chunk / 8][4 * (chunk % 8) + t];
}

/* Each lane has one pair of chunks, first of the key, then of the value. Some lanes have none. */
template <int width> struct newest_kv_row {
    static constexpr int pairs = width / 16;
    bool has_pair, is_key;
    int chunk;
    rotary_chunks pair;

    __device__ __forceinline__ void fetch(const store_kv_params &from, const ft_attend_kv_params &a,
                                          size_t row, int kv_head)
    {
        int lane = (int) threadIdx.x % 32;
        has_pair = lane < 2 * pairs;
        is_key = lane < pairs;
        chunk = lane % pairs;
        if (has_pair) {
            void *data = is_key ? from.key : from.value;
            size_t at = (row * (size_t) a.kv_heads + (size_t) kv_head) * width + 8 * chunk;
            pair.low = load_chunk(data, at);
            pair.high = load_chunk(data, at + width / 2);
        }
    }

    /* Writes the pair to row `row` of the cache, and to key `key` of the tile. */
    template <ft_dtype kv_dtype>
    __device__ __forceinline__ void write(const store_kv_params &to, size_t row,
                                          const rope_angles<width> &by,
                                          kv_tile<kv_dtype, width> *tile, int key)
    {
        if (!has_pair)
            return;
        if (is_key)
            rotate_pair<kv_dtype>(&pair, by, 8 * chunk);
        uint4 *near = is_key ? key_slot(tile, key, chunk) : value_slot(tile, key, chunk);
        uint4 *far =
            is_key ? key_slot(tile, key, chunk + pairs) : value_slot(tile, key, chunk + pairs);
        uint4 *cached = (uint4 *) (is_key ? to.keys.data : to.values.data) + row * (width / 8);
        *near = pair.low;
        *far = pair.high;
        cached[chunk] = pair.low;
        cached[chunk + pairs] = pair.high;
    }
};

#endif
