/*
 * decode_load.cuh - inside decode.cu: the keys of a CTA, and the copies of a warp to shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_LOAD_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_LOAD_CUH

#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"

enum {
    WARPS = 4, /* warps per CTA; each processes a quarter of the keys of a split */
    THREADS = 32 * WARPS,
    MAX_HEADS = 8,   /* query heads per CTA */
    MAX_SPLITS = 64, /* maximum splits of a sequence; longer sequences have larger splits */
    MIN_SPLIT_KEYS = 64,
    MAX_SPLITS_PER_CTA = 4, /* maximum, if there are enough CTAs: ... */
    CTAS_PER_SM = 12,       /* ... this many per multiprocessor */
    STATS = 4 /* floats after the elements of a head in a partial result: maximum score and sum */
};

/* Tile shapes and vector widths for a warp that reads rows of `width` elements. */
template <ft_dtype kv_dtype, int width> struct decode_traits {
    static constexpr int element = kv_dtype == FT_I8 ? 1 : 2;
    static constexpr int row = width * element;      /* bytes */
    static constexpr int keys = row > 256 ? 16 : 32; /* keys per tile, limited by registers */
    static constexpr int min_ctas = width > 128 ? 2 : row > 128 ? 3 : 4; /* CTAs per SM */
    static constexpr int min_split_keys = WARPS * keys; /* minimum keys of a split */
    static constexpr int key_chunks = row / 64; /* chunks of 16 bytes per lane, 4 lanes a row */
    static constexpr int value_bytes = row < 128 ? 8 : 16;
    static constexpr int value_chunks = row / (8 * value_bytes); /* 8 lanes a row */
    static constexpr int chunk_elements = value_bytes / element; /* elements of such a chunk */
};

/* Threads that compute one result: all warps of a CTA, or a single warp. */
template <int warps> struct thread_group {
    static constexpr int threads = 32 * warps;
    static __device__ __forceinline__ int index()
    {
        return warps == 1 ? (int) threadIdx.x % 32 : (int) threadIdx.x;
    }
    static __device__ __forceinline__ void sync()
    {
        if (warps == 1)
            __syncwarp();
        else
            __syncthreads();
    }
};

/* ---- Splits --------------------------------------------------------------------------------- */

/*
 * Splits begin at multiples of `size`. This thread group processes the splits begin .. end - 1 of
 * `count`.
 */
typedef struct split_range {
    int size, count, begin, end;
    int first, last; /* visible keys of the row */
} split_range;

/* Splits of CTA `cta` of a row: splits_per_cta each. */
static __device__ __forceinline__ split_range split_range_of(const ft_attend_kv_params &a,
                                                             int position, int min_keys, int cta)
{
    split_range s = { min_keys };
    s.first = ft_first_visible_key(a, position);
    s.last = position;
    while (position / s.size - s.first / s.size >= MAX_SPLITS)
        s.size *= 2;
    s.count = position / s.size - s.first / s.size + 1;
    s.begin = cta * a.splits_per_cta;
    s.end = min(s.begin + a.splits_per_cta, s.count);
    return s;
}

/* The first key of a split, or of the one after the last. It may be invisible to the row. */
static __device__ __forceinline__ int split_begin(const split_range &s, int index)
{
    return (s.first / s.size + index) * s.size;
}

/* ---- Queries ------------------------------------------------------------------------------- */

/*
 * The columns of the MMAs are queries that share one KV head: the query heads of a row that share
 * it, followed by those of the other rows that read the same keys.
 */
typedef struct head_columns {
    int kv_head, first, count; /* first column of this thread group, and their number */
    unsigned rows;             /* the row, or the group of rows that read the same keys */
} head_columns;

static __device__ __forceinline__ head_columns head_columns_of(const ft_attend_kv_params &a,
                                                               unsigned group, unsigned rows)
{
    head_columns of = { (int) group % a.kv_heads, (int) group / a.kv_heads * MAX_HEADS };
    of.rows = rows;
    of.count = min(a.group * a.sequences_per_kv - of.first, MAX_HEADS);
    return of;
}

/* Offset of the first element of a column in queries and results. */
static __device__ __forceinline__ size_t column_offset(const ft_attend_kv_params &a,
                                                       const head_columns &of, int index)
{
    int column = of.first + index, head = of.kv_head * a.group + column % a.group;
    size_t row = (size_t) of.rows * (size_t) a.sequences_per_kv + (size_t) (column / a.group);
    return (row * (size_t) a.heads + (size_t) head) * (size_t) a.head_size;
}

/* ---- Copies --------------------------------------------------------------------------------- */

/*
 * The keys and values of one tile of a warp. A lane copies to shared memory exactly what it reads
 * itself. More loads are in flight than registers could hold, and no lane waits for another.
 */
template <ft_dtype kv_dtype, int width> struct kv_tile {
    typedef decode_traits<kv_dtype, width> f;
    uint4 key[f::keys / 8][f::key_chunks][32]; /* lane 4g + t: key 8i + g, chunks t, t + 4, ... */
    uint32_t value[f::keys / 4][f::value_chunks][32][f::value_bytes / 4]; /* chunks g, g + 8, ... */
    float key_scale[f::keys], value_scale[f::keys];                       /* read by all lanes */
};

/* Scales of key 8i + g. */
template <int keys> struct scales {
    float key[keys / 8], value[keys / 8];
};

/*
 * Lane t holds the values 2t, 2t + 1, 2t + 8, 2t + 9 of every 16. Returns the index of its value i.
 */
static __device__ __forceinline__ int value_index(int i)
{
    return i / 4 * 16 + 2 * ((int) threadIdx.x % 4) + i % 2 + i % 4 / 2 * 8;
}

static __device__ __forceinline__ bool is_visible(const split_range &s, int key)
{
    return key >= s.first && key <= s.last;
}

/*
 * The first key of a tile and its row in the cache. With beam search the keys are scattered, and
 * each lane of the warp has looked up its own.
 */
typedef struct tile_location {
    int base;
    uint32_t row;
} tile_location;

/* Cache row of key `key` of a tile; all lanes of the warp must call it. */
template <bool has_beams>
static __device__ __forceinline__ uint32_t cache_row_of(const tile_location &at, int key)
{
    return has_beams ? __shfl_sync(~0u, at.row, key) : at.row + (uint32_t) key;
}

/*
 * Whether all rows and chunks may be read, which holds except at the ends of a sequence. With beam
 * search, rows past the last key repeat it and have zero weight.
 */
template <bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ bool is_full_tile(const ft_attend_kv_params &a,
                                                    const split_range &s, int base)
{
    return a.head_size == width && is_visible(s, base) &&
           (has_beams || is_visible(s, base + decode_traits<kv_dtype, width>::keys - 1));
}

/* Starts the copy of the keys of a tile. A full tile needs no instruction besides the copies. */
template <bool full, bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void copy_keys(kv_tile<kv_dtype, width> *to,
                                                 const ft_attend_kv_params &a, const split_range &s,
                                                 const tile_location &at)
{
    typedef decode_traits<kv_dtype, width> f;
    int lane = (int) threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int bytes = full ? f::row : a.head_size * f::element;
    const uint8_t *keys = (const uint8_t *) a.keys + 16 * t;
    const uint8_t *first = keys + (size_t) cache_row_of<false>(at, g) * (size_t) bytes;
#pragma unroll(full ? f::keys : 1)
    for (int i = 0; i < f::keys / 8; i++) {
        const uint8_t *from = first + 8 * i * bytes;
        if (has_beams)
            from = keys + (size_t) cache_row_of<true>(at, 8 * i + g) * (size_t) bytes;
        bool wanted = full || is_visible(s, at.base + 8 * i + g);
#pragma unroll
        for (int j = 0; j < f::key_chunks; j++)
            ft_cp_async_16(&to->key[i][j][lane], from + 64 * j,
                           full || (wanted && 16 * (t + 4 * j) < bytes));
    }
}

template <bool full, bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void copy_values(kv_tile<kv_dtype, width> *to,
                                                   const ft_attend_kv_params &a,
                                                   const split_range &s, const tile_location &at)
{
    typedef decode_traits<kv_dtype, width> f;
    int lane = (int) threadIdx.x % 32, begin = f::value_bytes * (lane / 4);
    int bytes = full ? f::row : a.head_size * f::element;
    const uint8_t *values = (const uint8_t *) a.values + begin;
    const uint8_t *first =
        values + (size_t) cache_row_of<false>(at, value_index(0)) * (size_t) bytes;
#pragma unroll(full ? f::keys : 1)
    for (int i = 0; i < f::keys / 4; i++) {
        const uint8_t *row =
            first + (value_index(i) - value_index(0)) * bytes; /* a constant offset */
        if (has_beams)
            row = values + (size_t) cache_row_of<true>(at, value_index(i)) * (size_t) bytes;
        bool wanted = full || is_visible(s, at.base + value_index(i));
#pragma unroll
        for (int j = 0; j < f::value_chunks; j++) {
            const uint8_t *from = row + 8 * f::value_bytes * j;
            bool inside = full || (wanted && begin + 8 * f::value_bytes * j < bytes);
            if (f::value_bytes == 16)
                ft_cp_async_16(to->value[i][j][lane], from, inside);
            else
                ft_cp_async_8(to->value[i][j][lane], from, inside);
        }
    }
}

/* Each lane copies the scales of one key. */
template <bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void copy_scales(kv_tile<kv_dtype, width> *to,
                                                   const ft_attend_kv_params &a,
                                                   const split_range &s, const tile_location &at)
{
    int lane = (int) threadIdx.x % 32;
    bool wanted = is_visible(s, at.base + lane);
    uint32_t row = has_beams ? at.row : at.row + (uint32_t) lane;
    if (lane < decode_traits<kv_dtype, width>::keys) {
        ft_cp_async_4(&to->key_scale[lane], a.key_scales + row, wanted);
        ft_cp_async_4(&to->value_scale[lane], a.value_scales + row, wanted);
    }
}

template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void load_scales(scales<decode_traits<kv_dtype, width>::keys> *to,
                                                   const kv_tile<kv_dtype, width> &from)
{
#pragma unroll
    for (int i = 0; i < decode_traits<kv_dtype, width>::keys / 8; i++) {
        int key = 8 * i + (int) threadIdx.x % 32 / 4;
        to->key[i] = from.key_scale[key];
        to->value[i] = from.value_scale[key];
    }
}

/* Copies the keys, and the scales of keys and values. */
template <bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void load_keys(kv_tile<kv_dtype, width> *to,
                                                 const ft_attend_kv_params &a, const split_range &s,
                                                 const tile_location &at)
{
    if (is_full_tile<has_beams, kv_dtype, width>(a, s, at.base))
        copy_keys<true, has_beams>(to, a, s, at);
    else
        copy_keys<false, has_beams>(to, a, s, at);
    if (kv_dtype == FT_I8)
        copy_scales<has_beams>(to, a, s, at);
}

template <bool has_beams, ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void load_values(kv_tile<kv_dtype, width> *to,
                                                   const ft_attend_kv_params &a,
                                                   const split_range &s, const tile_location &at)
{
    if (is_full_tile<has_beams, kv_dtype, width>(a, s, at.base))
        copy_values<true, has_beams>(to, a, s, at);
    else
        copy_values<false, has_beams>(to, a, s, at);
}

#endif
