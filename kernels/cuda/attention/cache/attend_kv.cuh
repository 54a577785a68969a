/*
 * attend_kv.cuh - what the forms of attention over a cache share: the operands, which rows a block of
 * threads takes, and which keys a row sees.
 *
 * The memory of an encoder-decoder is such a cache, of which every row sees all.
 *
 * Every result depends on its own row and position alone.  So each form fixes, for a row, the order
 * in which its keys are taken: tiles of keys begin at multiples of their size in the text, whatever
 * chunk the row came in, and a tile of which a row sees nothing changes no bit of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_CUH

#include "kernels/kv_cache.h"
#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/rows.cuh"

/* Queries and results are [tokens, heads * head_size], keys and values as kernels/kv_cache.h says. */
typedef struct ft_attend_job {
    const void *q;
    void *y;
    const void *keys, *values;
    const float *key_scales, *value_scales; /* NULL: the cache holds floats */
    ft_dtype q_dtype, y_dtype, cache_dtype;
    int heads, kv_heads, group; /* `group` heads read one of the cache's */
    int head_size;
    int window;         /* keys that a query sees; 0: all before it */
    float score_scale;  /* of scores, times log2(e): weights are powers of two */
    size_t cached_rows; /* of one head: tokens that the cache has room for, times kv_heads */

    bool whole;   /* every row sees all keys up to past[sequence]: the memory */
    int together; /* neighbouring sequences that read the same keys: lanes, of the memory; else 1 */

    size_t sequences;
    const int32_t *start, *past, *pages;
    size_t most_pages;
    size_t context; /* no sequence is longer */

    /*
     * Beams: of neighbouring sequences so many are lanes of one text.  The key at a position of a
     * seat's text lies in the pages of lane origin[seat * capacity + position].  NULL: in its own.
     */
    const int32_t *origin, *seat;
    size_t lanes, capacity;

    const ft_cuda_queries *blocks; /* NULL: each sequence has one row */
    size_t nblocks;

    int parts_of_block; /* decode.cu and decode_short.cu choose it ... */
    int shares, groups; /* ... and attend_kv_int8.cu these: of a row's keys, and of its heads */
    float *partial;     /* both: of parts of the keys ... */
    uint32_t *arrived;  /* ... and how many are there: [sequences, kv_heads, groups of heads] */
} ft_attend_job;

/* Of an operation. */
ft_attend_job ft_attend_job_of(const ft_cuda_args *args);

/* The forms: they return cudaErrorNotSupported for what they do not take. */
int ft_cuda_attend_plain(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);
int ft_cuda_attend_step(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);
int ft_cuda_attend_short(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);
int ft_cuda_attend_codes(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);
int ft_cuda_attend_mma(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);
int ft_cuda_attend_wgmma(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a);

/* What decode.cu and store_attend.cu write beside results. */
size_t ft_cuda_attend_step_scratch(size_t sequences, size_t context, int heads, int head_size);
size_t ft_cuda_attend_store_scratch(size_t sequences, size_t context, int heads, int head_size);
size_t ft_cuda_attend_step_counters(size_t sequences, int heads, int kv_heads);

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Some rows of one sequence. */
typedef struct ft_attend_task {
    size_t row;            /* the first, in the run */
    int rows;              /* 0: nothing to do */
    int position;          /* of the first in its text: the last key that it sees */
    const int32_t *pages;  /* of the sequence, or the first of its lanes */
    const int32_t *origin; /* of its keys: lanes; NULL: there are none */
} ft_attend_task;

/*
 * The rows of block `index`: of a->blocks, or where there are none, of that sequence.  A form may
 * take `most` rows at once, a multiple of FT_CUDA_QUERIES: the blocks within have none then.
 */
__device__ __forceinline__ ft_attend_task ft_attend_take(const ft_attend_job &a, size_t index,
                                                         int most = FT_CUDA_QUERIES)
{
    ft_attend_task task = {};
    int sequence = (int) index, query = 0, first, length;
    if (a.blocks != NULL) {
        ft_cuda_queries block = a.blocks[index];
        sequence = block.sequence;
        query = block.query;
        first = block.first;
        length = block.length;
    } else {
        first = a.start[index];
        length = min(a.start[index + 1] - first, 1);
    }
    if (query >= length || query % most != 0)
        return task;
    task.row = (size_t) (first + query);
    task.rows = min(length - query, most);
    task.position = a.whole ? a.past[sequence] : a.past[sequence] + query;
    if (a.origin != NULL) {
        task.origin = a.origin + (size_t) a.seat[sequence] * a.capacity;
        sequence -= sequence % (int) a.lanes;
    }
    task.pages = a.pages + (size_t) sequence * a.most_pages;
    return task;
}

/* Row of the cache, in rows of one head, where a key lies. */
__device__ __forceinline__ size_t ft_attend_find(const ft_attend_job &a, const ft_attend_task &task,
                                                 int key, int kv_head)
{
    const int32_t *pages = task.pages;
    if (task.origin != NULL)
        pages += (size_t) task.origin[key] * a.most_pages;
    return ft_cache_find(pages, (size_t) key, (size_t) kv_head, (size_t) a.kv_heads);
}

/* The last key that a row of a task sees. */
__device__ __forceinline__ int ft_attend_last_key(const ft_attend_job &a,
                                                  const ft_attend_task &task, int row)
{
    return a.whole ? task.position : task.position + row;
}

/* The first key that a query sees whose last is at `position`: mostly its own. */
__device__ __forceinline__ int ft_attend_first_key(const ft_attend_job &a, int position)
{
    return a.window > 0 ? max(position + 1 - a.window, 0) : 0;
}

/* What 16 rows do not see of a tile: `own` is the last key of the first of them, `base` the tile's.
 */
template <int keys>
__device__ __forceinline__ void ft_attend_hide(float s[keys / 8][4], const ft_attend_job &a,
                                               int own, int base)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (base + keys - 1 <= own && ft_attend_first_key(a, own + 15) <= base)
        return;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        int last = (a.whole ? own : own + g + 8 * row) - base;
        int first = ft_attend_first_key(a, last + base) - base;
#pragma unroll
        for (int j = 0; j < keys / 8; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (8 * j + 2 * t + i > last || 8 * j + 2 * t + i < first)
                    s[j][2 * row + i] = -INFINITY;
    }
}

/* The largest or the sum of the lanes of a warp that have the same columns of a product: t of (g,
 * t). */
__device__ __forceinline__ float ft_attend_largest(float x)
{
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ __forceinline__ float ft_attend_total(float x)
{
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

/* Eight codes times their scale, rounded to halves: four words. */
template <bool bf16>
__device__ __forceinline__ void ft_scale_codes(uint32_t out[4], uint2 codes, float scale)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t word = i < 2 ? codes.x : codes.y;
        out[i] = ft_pack_halves < bf16 ? FT_BF16
                                       : FT_F16 > (ft_unpack_code(word, 2 * i % 4) * scale,
                                                   ft_unpack_code(word, 2 * i % 4 + 1) * scale);
    }
}

#endif
