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

enum { ROWS = 16, KEYS = 16, THREADS_PER_ROW = 8, THREADS = ROWS * THREADS_PER_ROW };

/* Elements of a head that each thread of a row accumulates: at, at + THREADS_PER_ROW, ... */
enum { ELEMENTS_PER_THREAD = FT_CUDA_MAX_HEAD_SIZE / THREADS_PER_ROW };

/* Tiles in shared memory. Queries and keys have an odd stride to avoid bank conflicts. */
typedef struct smem_tiles {
    float *query, *key, *value; /* [ROWS], [KEYS] rows */
    float *prob;                /* [ROWS, KEYS + 1] */
    int stride;
} smem_tiles;

static size_t smem_bytes(int head_size)
{
    return ((size_t) (ROWS + KEYS) * (size_t) (head_size + 1) + (size_t) KEYS * (size_t) head_size +
            ROWS * (KEYS + 1)) *
           sizeof(float);
}

static __device__ __forceinline__ smem_tiles smem_tiles_of(float *smem, int head_size)
{
    smem_tiles d;
    d.stride = head_size + 1;
    d.query = smem;
    d.key = d.query + ROWS * d.stride;
    d.value = d.key + KEYS * d.stride;
    d.prob = d.value + KEYS * head_size;
    return d;
}

/* Row `r` of the CTA: token of the tile, and query head. */
typedef struct query_row {
    int token, head;
} query_row;

static __device__ __forceinline__ query_row query_row_at(const ft_attend_kv_params &a, int kv_head,
                                                         int r)
{
    query_row row = { r / a.group, kv_head * a.group + r % a.group };
    return row;
}

static __device__ __forceinline__ void load_queries(const smem_tiles &d,
                                                    const ft_attend_kv_params &a,
                                                    const ft_query_tile &query_tile, int kv_head,
                                                    int first)
{
    int chunks = a.head_size / 8;
    for (int i = (int) threadIdx.x; i < ROWS * chunks; i += THREADS) {
        int r = i / chunks, at = i % chunks * 8;
        query_row row = query_row_at(a, kv_head, first + r);
        float v[8] = {};
        if (row.token < query_tile.rows)
            ft_load<8>(
                v, (void *) a.q, a.q_dtype,
                ((query_tile.row + (size_t) row.token) * (size_t) a.heads + (size_t) row.head) *
                        (size_t) a.head_size +
                    (size_t) at);
        for (int k = 0; k < 8; k++)
            d.query[r * d.stride + at + k] = v[k];
    }
}

/* Loads KEYS rows of the cache from `base` on as floats. Rows after `last` become zeros. */
static __device__ __forceinline__ void load_kv(float *to, int stride, const void *from,
                                               const float *scales, const ft_attend_kv_params &a,
                                               const ft_query_tile &query_tile, int kv_head,
                                               int base, int last)
{
    int chunks = a.head_size / 8;
    for (int i = (int) threadIdx.x; i < KEYS * chunks; i += THREADS) {
        int key = i / chunks, at = i % chunks * 8;
        float v[8] = {}, scale = 1.0f;
        if (base + key <= last) {
            size_t row = ft_cached_row(a, query_tile, base + key, kv_head);
            ft_load<8>(v, (void *) from, a.cache_dtype, row * (size_t) a.head_size + (size_t) at);
            scale = a.cache_dtype == FT_I8 ? scales[row] : 1.0f;
        }
        for (int k = 0; k < 8; k++)
            to[key * stride + at + k] = v[k] * scale;
    }
}

static __device__ __forceinline__ void compute_qk(const smem_tiles &d, const ft_attend_kv_params &a)
{
    for (int i = (int) threadIdx.x; i < ROWS * KEYS; i += THREADS) {
        const float *q = d.query + i / KEYS * d.stride, *k = d.key + i % KEYS * d.stride;
        float sum = 0.0f;
        for (int at = 0; at < a.head_size; at++)
            sum = fmaf(q[at], k[at], sum);
        d.prob[i / KEYS * (KEYS + 1) + i % KEYS] = sum * a.score_scale;
    }
}

/* The keys of a tile that are visible to a row: from .. to - 1. */
typedef struct key_range {
    int from, to;
} key_range;

/* Running maximum, sum of weights and output elements of one row in one thread. */
typedef struct row_acc {
    float row_max, sum, y[ELEMENTS_PER_THREAD];
} row_acc;

static __device__ __forceinline__ void accumulate_tile(row_acc *s, const smem_tiles &d,
                                                       const ft_attend_kv_params &a, int r,
                                                       key_range visible)
{
    const float *scores = d.prob + r * (KEYS + 1);
    float row_max = s->row_max;
    for (int key = visible.from; key < visible.to; key++)
        row_max = fmaxf(row_max, scores[key]);
    float rescale = exp2f(s->row_max - row_max);
    s->row_max = row_max;
    s->sum *= rescale;
#pragma unroll
    for (int i = 0; i < ELEMENTS_PER_THREAD; i++)
        s->y[i] *= rescale;
    for (int key = visible.from; key < visible.to; key++) {
        float prob = exp2f(scores[key] - row_max);
        const float *value = d.value + key * a.head_size + (int) threadIdx.x % THREADS_PER_ROW;
        s->sum += prob;
#pragma unroll
        for (int i = 0; i < ELEMENTS_PER_THREAD; i++)
            if (i * THREADS_PER_ROW < a.head_size)
                s->y[i] = fmaf(prob, value[i * THREADS_PER_ROW], s->y[i]);
    }
}

static __device__ __forceinline__ void store(const row_acc &s, const ft_attend_kv_params &a,
                                             const ft_query_tile &query_tile, query_row row)
{
    size_t at = ((query_tile.row + (size_t) row.token) * (size_t) a.heads + (size_t) row.head) *
                    (size_t) a.head_size +
                threadIdx.x % THREADS_PER_ROW;
#pragma unroll
    for (int i = 0; i < ELEMENTS_PER_THREAD; i++)
        if (i * THREADS_PER_ROW < a.head_size) {
            float v[1] = { s.y[i] / s.sum };
            ft_store<1>(a.y, a.y_dtype, at + (size_t) (i * THREADS_PER_ROW), v);
        }
}

/* Grid: query tiles, KV heads, groups of ROWS of the tile's tokens times heads. */
static __global__ void __launch_bounds__(THREADS)
    attend_kv_kernel(const __grid_constant__ ft_attend_kv_params a)
{
    extern __shared__ float smem[];
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    ft_query_tile query_tile = ft_query_tile_at(a, blockIdx.x);
    int kv_head = (int) blockIdx.y, first = (int) blockIdx.z * ROWS;
    if (first >= query_tile.rows * a.group)
        return;
    smem_tiles d = smem_tiles_of(smem, a.head_size);
    load_queries(d, a, query_tile, kv_head, first);
    int r = (int) threadIdx.x / THREADS_PER_ROW;
    query_row row = query_row_at(a, kv_head, first + r);
    int last_visible = ft_last_visible_key(a, query_tile, row.token),
        first_visible = ft_first_visible_key(a, last_visible);
    int last =
        ft_last_visible_key(a, query_tile, min((first + ROWS - 1) / a.group, query_tile.rows - 1));
    int begin =
        ft_first_visible_key(a, ft_last_visible_key(a, query_tile, first / a.group)) / KEYS * KEYS;
    row_acc s = { -INFINITY, 0.0f };
    for (int base = begin; base <= last; base += KEYS) {
        __syncthreads();
        load_kv(d.key, d.stride, a.keys, a.key_scales, a, query_tile, kv_head, base, last);
        load_kv(d.value, a.head_size, a.values, a.value_scales, a, query_tile, kv_head, base, last);
        __syncthreads();
        compute_qk(d, a);
        __syncthreads();
        key_range visible = { max(first_visible - base, 0), min(last_visible + 1 - base, KEYS) };
        if (row.token < query_tile.rows && visible.from < visible.to)
            accumulate_tile(&s, d, a, r, visible);
    }
    if (row.token < query_tile.rows)
        store(s, a, query_tile, row);
}

int ft_cuda_attend_kv_f32(const ft_cuda_device_props *props, void *stream,
                          const ft_attend_kv_params *a)
{
    size_t blocks = a->blocks != NULL ? a->n_query_tiles : a->sequences;
    int tokens = a->blocks != NULL ? FT_CUDA_QUERY_TILE : 1;
    dim3 grid((unsigned) blocks, (unsigned) a->kv_heads,
              ft_ceil_div((size_t) (tokens * a->group), ROWS));
    size_t bytes = smem_bytes(a->head_size);
    cudaError_t status = cudaFuncSetAttribute(
        attend_kv_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kv_kernel, grid, dim3(THREADS), bytes, stream, props->has_pdl, 1, *a);
}
