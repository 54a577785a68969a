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
template <int width> struct angles {
    float cosine[width / 2], sine[width / 2];
};

/* ---- Work of a CTA -------------------------------------------------------------------------- */

/* Each sequence has one row and its own pages; blockIdx.y is the sequence. */
static __device__ __forceinline__ ft_attend_task task_of_step(const ft_attend_job &a)
{
    ft_attend_task task = {};
    int first = a.start[blockIdx.y];
    task.rows = min(a.start[blockIdx.y + 1] - first, 1);
    task.row = (size_t) first;
    task.position = a.past[blockIdx.y];
    task.pages = a.pages + blockIdx.y * a.most_pages;
    return task;
}

/* split_range_of() for a row of few splits, with one split per CTA. */
static __device__ __forceinline__ share share_of_step(const ft_attend_job &a, int position,
                                                      int size)
{
    share s = { size };
    s.first = ft_attend_first_key(a, position);
    s.last = position;
    s.count = position / size - s.first / size + 1;
    return s;
}

/* Index of a column's head, over all rows of the batch. */
static __device__ __forceinline__ size_t head_at(const ft_attend_job &a, const columns &of,
                                                 int index)
{
    return (size_t) of.rows * (size_t) a.heads + (size_t) (of.kv_head * a.group + of.first + index);
}

/* ---- Chunks of eight f16 or bf16 elements --------------------------------------------------- */

/* A chunk of the lower half of a head, and its partner in the upper half. */
typedef struct pair_of_pieces {
    uint4 low, high;
} pair_of_pieces;

static __device__ __forceinline__ uint4 fetch_piece(void *data, size_t at)
{
    return *(const uint4 *) ((const uint16_t *) data + at);
}

template <ft_dtype stored>
static __device__ __forceinline__ void unpack_piece(float v[8], const uint4 &piece)
{
    ft_bits<8> bits = { { piece.x, piece.y, piece.z, piece.w } };
    ft_unpack_as<stored, 8>(v, bits);
}

template <ft_dtype stored> static __device__ __forceinline__ uint4 pack_piece(const float v[8])
{
    return make_uint4(ft_pack_halves<stored>(v[0], v[1]), ft_pack_halves<stored>(v[2], v[3]),
                      ft_pack_halves<stored>(v[4], v[5]), ft_pack_halves<stored>(v[6], v[7]));
}

/* Rotates a pair as STORE_KV does; `first` is the first element of the lower chunk. */
template <ft_dtype stored, int width>
static __device__ __forceinline__ void turn_pair(pair_of_pieces *p, const angles<width> &by,
                                                 int first)
{
    store_halves<8> x;
    unpack_piece<stored>(x.low, p->low);
    unpack_piece<stored>(x.high, p->high);
    store_turn(&x, by.cosine + first, by.sine + first);
    p->low = pack_piece<stored>(x.low);
    p->high = pack_piece<stored>(x.high);
}

/* ---- Queries -------------------------------------------------------------------------------- */

/* A lane holds the chunks t, t + 4, ... of head g, including the partners. */
template <int width> struct raw_queries {
    static constexpr int pairs = width / 64;
    pair_of_pieces pair[pairs];

    __device__ __forceinline__ void fetch(const store_job &from, const ft_attend_job &a,
                                          const columns &of)
    {
        int g = (int) threadIdx.x % 32 / 4;
        bool wanted = g < of.count;
        size_t at = head_at(a, of, wanted ? g : 0) * width + threadIdx.x % 4 * 8;
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            pair[i].low = pair[i].high = make_uint4(0, 0, 0, 0);
            if (wanted) {
                pair[i].low = fetch_piece(from.query, at + 32 * i);
                pair[i].high = fetch_piece(from.query, at + 32 * i + width / 2);
            }
        }
    }

    /* Rotates the queries and writes them in the order of load_queries(). */
    template <ft_dtype stored>
    __device__ __forceinline__ void turn_into(uint32_t q[width / 16][2], const angles<width> &by)
    {
#pragma unroll
        for (int i = 0; i < pairs; i++) {
            turn_pair<stored>(&pair[i], by, (int) threadIdx.x % 4 * 8 + 32 * i);
            put(q + 2 * i, pair[i].low);
            put(q + 2 * (i + pairs), pair[i].high);
        }
    }

    static __device__ __forceinline__ void put(uint32_t q[2][2], const uint4 &piece)
    {
        q[0][0] = piece.x;
        q[0][1] = piece.y;
        q[1][0] = piece.z;
        q[1][1] = piece.w;
    }
};

/* ---- The newest key ------------------------------------------------------------------------- */

/* Where copy_keys() and copy_values() put chunk `chunk` of key `key` of a tile. */
template <ft_dtype stored, int width>
static __device__ __forceinline__ uint4 *place_of_key(reading<stored, width> *r, int key, int piece)
{
    return &r->key[key / 8][piece / 4][4 * (key % 8) + piece % 4];
}

template <ft_dtype stored, int width>
static __device__ __forceinline__ uint4 *place_of_value(reading<stored, width> *r, int key,
                                                        int piece)
{
    static_assert(form<stored, width>::value_bytes == sizeof(uint4), "value chunks have 16 bytes");
    int i = key / 16 * 4 + key % 16 / 8 * 2 + key % 2, t = key % 8 / 2;
    return (uint4 *) r->value[i][piece / 8][4 * (piece % 8) + t];
}

/* Each lane has one pair of chunks, first of the key, then of the value. Some lanes have none. */
template <int width> struct newest_row {
    static constexpr int pairs = width / 16;
    bool there, is_key;
    int piece;
    pair_of_pieces pair;

    __device__ __forceinline__ void fetch(const store_job &from, const ft_attend_job &a, size_t row,
                                          int kv_head)
    {
        int lane = (int) threadIdx.x % 32;
        there = lane < 2 * pairs;
        is_key = lane < pairs;
        piece = lane % pairs;
        if (there) {
            void *data = is_key ? from.key : from.value;
            size_t at = (row * (size_t) a.kv_heads + (size_t) kv_head) * width + 8 * piece;
            pair.low = fetch_piece(data, at);
            pair.high = fetch_piece(data, at + width / 2);
        }
    }

    /* Writes the pair to row `row` of the cache, and to key `key` of the tile. */
    template <ft_dtype stored>
    __device__ __forceinline__ void keep(const store_job &to, size_t row, const angles<width> &by,
                                         reading<stored, width> *tile, int key)
    {
        if (!there)
            return;
        if (is_key)
            turn_pair<stored>(&pair, by, 8 * piece);
        uint4 *near = is_key ? place_of_key(tile, key, piece) : place_of_value(tile, key, piece);
        uint4 *far = is_key ? place_of_key(tile, key, piece + pairs)
                            : place_of_value(tile, key, piece + pairs);
        uint4 *cached = (uint4 *) (is_key ? to.keys.data : to.values.data) + row * (width / 8);
        *near = pair.low;
        *far = pair.high;
        cached[piece] = pair.low;
        cached[piece + pairs] = pair.high;
    }
};

#endif
