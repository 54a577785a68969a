/*
 * attend_kv_f32.cu - attention over the KV cache in float32: for float32 models, and the fallback
 * for everything that the other kernels do not support.
 *
 * A CTA processes 16 rows (tokens times the query heads that share one KV head) and all their keys,
 * 16 at a time. Eight threads share a row. Each sums the same softmax weights in the same order,
 * and one eighth of the elements of the head.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/attend_kv.cuh"
#include "kernels/cuda/rows.cuh"

enum { ROWS = 16, KEYS = 16, OF_ROW = 8, THREADS = ROWS * OF_ROW };

/* Elements of a head that each thread of a row accumulates: at, at + THREADS_PER_ROW, ... */
enum { MINE = FT_CUDA_WIDEST_HEAD / OF_ROW };

/* Tiles in shared memory. Queries and keys have an odd stride to avoid bank conflicts. */
typedef struct desk {
    float *query, *key, *value; /* [ROWS], [KEYS] rows */
    float *weight;              /* [ROWS, KEYS + 1] */
    int stride;
} desk;

static size_t desk_bytes(int head_size)
{
    return ((size_t) (ROWS + KEYS) * (size_t) (head_size + 1) + (size_t) KEYS * (size_t) head_size +
            ROWS * (KEYS + 1)) *
           sizeof(float);
}

static __device__ __forceinline__ desk desk_of(float *room, int head_size)
{
    desk d;
    d.stride = head_size + 1;
    d.query = room;
    d.key = d.query + ROWS * d.stride;
    d.value = d.key + KEYS * d.stride;
    d.weight = d.value + KEYS * head_size;
    return d;
}

/* Row `r` of the CTA: token of the tile, and query head. */
typedef struct row_of {
    int token, head;
} row_of;

static __device__ __forceinline__ row_of row_at(const ft_attend_job &a, int kv_head, int r)
{
    row_of row = { r / a.group, kv_head * a.group + r % a.group };
    return row;
}

static __device__ __forceinline__ void load_queries(const desk &d, const ft_attend_job &a,
                                                    const ft_attend_task &task, int kv_head,
                                                    int first)
{
    int pieces = a.head_size / 8;
    for (int i = (int) threadIdx.x; i < ROWS * pieces; i += THREADS) {
        int r = i / pieces, at = i % pieces * 8;
        row_of row = row_at(a, kv_head, first + r);
        float v[8] = {};
        if (row.token < task.rows)
            ft_load<8>(v, (void *) a.q, a.q_dtype,
                       ((task.row + (size_t) row.token) * (size_t) a.heads + (size_t) row.head) *
                               (size_t) a.head_size +
                           (size_t) at);
        for (int k = 0; k < 8; k++)
            d.query[r * d.stride + at + k] = v[k];
    }
}

/* Loads KEYS rows of the cache from `base` on as floats. Rows after `last` become zeros. */
static __device__ __forceinline__ void load_cached(float *to, int stride, const void *from,
                                                   const float *scales, const ft_attend_job &a,
                                                   const ft_attend_task &task, int kv_head,
                                                   int base, int last)
{
    int pieces = a.head_size / 8;
    for (int i = (int) threadIdx.x; i < KEYS * pieces; i += THREADS) {
        int key = i / pieces, at = i % pieces * 8;
        float v[8] = {}, scale = 1.0f;
        if (base + key <= last) {
            size_t row = ft_attend_find(a, task, base + key, kv_head);
            ft_load<8>(v, (void *) from, a.cache_dtype, row * (size_t) a.head_size + (size_t) at);
            scale = a.cache_dtype == FT_I8 ? scales[row] : 1.0f;
        }
        for (int k = 0; k < 8; k++)
            to[key * stride + at + k] = v[k] * scale;
    }
}

static __device__ __forceinline__ void score(const desk &d, const ft_attend_job &a)
{
    for (int i = (int) threadIdx.x; i < ROWS * KEYS; i += THREADS) {
        const float *q = d.query + i / KEYS * d.stride, *k = d.key + i % KEYS * d.stride;
        float sum = 0.0f;
        for (int at = 0; at < a.head_size; at++)
            sum = fmaf(q[at], k[at], sum);
        d.weight[i / KEYS * (KEYS + 1) + i % KEYS] = sum * a.score_scale;
    }
}

/* The keys of a tile that are visible to a row: from .. to - 1. */
typedef struct range {
    int from, to;
} range;

/* Running maximum, sum of weights and output elements of one row in one thread. */
typedef struct sums {
    float most, sum, y[MINE];
} sums;

static __device__ __forceinline__ void add_tile(sums *s, const desk &d, const ft_attend_job &a,
                                                int r, range seen)
{
    const float *scores = d.weight + r * (KEYS + 1);
    float most = s->most;
    for (int key = seen.from; key < seen.to; key++)
        most = fmaxf(most, scores[key]);
    float shrink = exp2f(s->most - most);
    s->most = most;
    s->sum *= shrink;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        s->y[i] *= shrink;
    for (int key = seen.from; key < seen.to; key++) {
        float weight = exp2f(scores[key] - most);
        const float *value = d.value + key * a.head_size + (int) threadIdx.x % OF_ROW;
        s->sum += weight;
#pragma unroll
        for (int i = 0; i < MINE; i++)
            if (i * OF_ROW < a.head_size)
                s->y[i] = fmaf(weight, value[i * OF_ROW], s->y[i]);
    }
}

static __device__ __forceinline__ void store(const sums &s, const ft_attend_job &a,
                                             const ft_attend_task &task, row_of row)
{
    size_t at = ((task.row + (size_t) row.token) * (size_t) a.heads + (size_t) row.head) *
                    (size_t) a.head_size +
                threadIdx.x % OF_ROW;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        if (i * OF_ROW < a.head_size) {
            float v[1] = { s.y[i] / s.sum };
            ft_store<1>(a.y, a.y_dtype, at + (size_t) (i * OF_ROW), v);
        }
}

/* Grid: query tiles, KV heads, groups of ROWS of the tile's tokens times heads. */
static __global__ void __launch_bounds__(THREADS)
    attend_kernel(const __grid_constant__ ft_attend_job a)
{
    extern __shared__ float room[];
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    ft_attend_task task = ft_attend_take(a, blockIdx.x);
    int kv_head = (int) blockIdx.y, first = (int) blockIdx.z * ROWS;
    if (first >= task.rows * a.group)
        return;
    desk d = desk_of(room, a.head_size);
    load_queries(d, a, task, kv_head, first);
    int r = (int) threadIdx.x / OF_ROW;
    row_of row = row_at(a, kv_head, first + r);
    int own = ft_attend_last_key(a, task, row.token), seen_from = ft_attend_first_key(a, own);
    int last = ft_attend_last_key(a, task, min((first + ROWS - 1) / a.group, task.rows - 1));
    int begin = ft_attend_first_key(a, ft_attend_last_key(a, task, first / a.group)) / KEYS * KEYS;
    sums s = { -INFINITY, 0.0f };
    for (int base = begin; base <= last; base += KEYS) {
        __syncthreads();
        load_cached(d.key, d.stride, a.keys, a.key_scales, a, task, kv_head, base, last);
        load_cached(d.value, a.head_size, a.values, a.value_scales, a, task, kv_head, base, last);
        __syncthreads();
        score(d, a);
        __syncthreads();
        range seen = { max(seen_from - base, 0), min(own + 1 - base, KEYS) };
        if (row.token < task.rows && seen.from < seen.to)
            add_tile(&s, d, a, r, seen);
    }
    if (row.token < task.rows)
        store(s, a, task, row);
}

int ft_cuda_attend_plain(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    size_t blocks = a->blocks != NULL ? a->nblocks : a->sequences;
    int tokens = a->blocks != NULL ? FT_CUDA_QUERIES : 1;
    dim3 grid((unsigned) blocks, (unsigned) a->kv_heads,
              ft_cover((size_t) (tokens * a->group), ROWS));
    size_t bytes = desk_bytes(a->head_size);
    cudaError_t status = cudaFuncSetAttribute(
        attend_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel, grid, dim3(THREADS), bytes, stream, chip->overlaps, 1, *a);
}
