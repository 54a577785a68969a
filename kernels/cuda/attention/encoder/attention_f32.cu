/*
 * attention_f32.cu - encoder attention in float32, for calibration and float plans.
 *
 * A CTA of 256 threads processes 64 queries and 64 keys at a time, 4 x 4 scores per thread. The
 * first pass over the keys finds the maximum and the sum of exponentials of each row. The second
 * pass recomputes the scores and computes the probabilities themselves, because calibration counts
 * them, and then the context. All sums have a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/activation.h"
#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/rowwise/count.cuh"

enum { THREADS = 256, TILE = 64, DEPTH = 32, KEYS = 16, LINE = TILE + 4 };

/* Columns of queries and keys, or rows of values. Lines are padded to avoid bank conflicts. */
typedef union operands {
    struct {
        float query[DEPTH][LINE], key[DEPTH][LINE];
    } columns;
    float value[KEYS][FT_ATTENTION_MAX_HEAD];
} operands;

/* Position of a thread's 4 x 4 scores: queries 4 y .. 4 y + 3, keys 4 x .. 4 x + 3 of the tile. */
static __device__ __forceinline__ int thread_x()
{
    return threadIdx.x % 16;
}

static __device__ __forceinline__ int thread_y()
{
    return threadIdx.x / 16;
}

static __device__ __forceinline__ size_t row_stride(const ft_cuda_attention_args &a)
{
    return (size_t) a.heads * (size_t) a.head_size;
}

/*
 * Loads the columns from .. from + DEPTH - 1 of 64 rows, transposed. Elements out of range are 0.
 */
static __device__ __forceinline__ void load_columns(float to[DEPTH][LINE],
                                                    const ft_cuda_attention_args &a,
                                                    const float *rows, int count, int from)
{
    for (int i = (int) threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        int row = i / DEPTH, col = i % DEPTH;
        bool inside = row < count && from + col < a.head_size;
        to[col][row] = inside ? rows[(size_t) row * row_stride(a) + (size_t) (from + col)] : 0.0f;
    }
}

/* The scores of 64 queries and the 64 keys from `first` on. */
static __device__ __forceinline__ void compute_qk(float s[4][4], operands *o,
                                                  const ft_cuda_attention_args &a,
                                                  const ft_attention_tile &query_tile, int first)
{
    const float *q = (const float *) a.q + (query_tile.first + query_tile.query) * row_stride(a) +
                     query_tile.column;
    const float *k =
        (const float *) a.k + (query_tile.first + first) * row_stride(a) + query_tile.column;
    for (int i = 0; i < 16; i++)
        s[i / 4][i % 4] = 0.0f;
    for (int from = 0; from < a.head_size; from += DEPTH) {
        __syncthreads();
        load_columns(o->columns.query, a, q, query_tile.queries, from);
        load_columns(o->columns.key, a, k, query_tile.length - first, from);
        __syncthreads();
#pragma unroll 8
        for (int col = 0; col < DEPTH; col++) {
            float4 x = *(const float4 *) &o->columns.query[col][4 * thread_y()];
            float4 y = *(const float4 *) &o->columns.key[col][4 * thread_x()];
            const float xs[] = { x.x, x.y, x.z, x.w }, ys[] = { y.x, y.y, y.z, y.w };
#pragma unroll
            for (int i = 0; i < 16; i++)
                s[i / 4][i % 4] = fmaf(xs[i / 4], ys[i % 4], s[i / 4][i % 4]);
        }
    }
    for (int i = 0; i < 16; i++)
        s[i / 4][i % 4] *= a.score_scale;
}

/* Maximum score of a row, and the sum of exp(score - max) over the keys that a thread has seen. */
typedef struct softmax_stats {
    float max, sum;
} softmax_stats;

static __device__ __forceinline__ softmax_stats merge_stats(softmax_stats a, softmax_stats b)
{
    float max = fmaxf(a.max, b.max);
    if (max == -INFINITY)
        return a;
    return softmax_stats{ max, a.sum * ft_exp(a.max - max) + b.sum * ft_exp(b.max - max) };
}

static __device__ __forceinline__ void update_stats(softmax_stats *row, const float s[4], int keys)
{
    for (int i = 0; i < 4; i++)
        if (4 * thread_x() + i < keys) {
            if (s[i] > row->max) {
                row->sum *= ft_exp(row->max - s[i]);
                row->max = s[i];
            }
            row->sum += ft_exp(s[i] - row->max);
        }
}

/* First pass: softmax statistics of the thread's four rows, over all keys. */
static __device__ __forceinline__ void softmax_pass(softmax_stats rows[4], operands *o,
                                                    const ft_cuda_attention_args &a,
                                                    const ft_attention_tile &query_tile)
{
    for (int i = 0; i < 4; i++)
        rows[i] = softmax_stats{ -INFINITY, 0.0f };
    for (int first = 0; first < query_tile.length; first += TILE) {
        float s[4][4];
        compute_qk(s, o, a, query_tile, first);
#pragma unroll
        for (int i = 0; i < 4; i++)
            update_stats(&rows[i], s[i], query_tile.length - first);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        for (int distance = 8; distance > 0; distance /= 2) {
            softmax_stats other = { __shfl_xor_sync(~0u, rows[i].max, distance),
                                    __shfl_xor_sync(~0u, rows[i].sum, distance) };
            /* both lanes add in the same order, so that they get the same result */
            rows[i] = (thread_x() & distance) == 0 ? merge_stats(rows[i], other)
                                                   : merge_stats(other, rows[i]);
        }
}

/* Writes the probabilities, transposed, to `to`, and counts those of existing keys and queries. */
static __device__ __forceinline__ void
store_probabilities(float to[TILE][LINE], const float s[4][4], const softmax_stats rows[4],
                    ft_local_counts *local_counts, const ft_cuda_counts &counts, int queries,
                    int keys)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float inverse_sum = 1.0f / rows[i].sum;
        for (int j = 0; j < 4; j++) {
            int query = 4 * thread_y() + i, key = 4 * thread_x() + j;
            float p = key < keys ? ft_exp(s[i][j] - rows[i].max) * inverse_sum : 0.0f;
            to[key][query] = p;
            if (counts.key != NULL && key < keys && query < queries)
                ft_count_one(counts, *local_counts, p);
        }
    }
}

/*
 * sums += p . v for the 64 keys from `first` on. A thread holds columns 4 x .. 4 x + 3 of each 64.
 */
template <int groups>
static __device__ __forceinline__ void
accumulate_pv(float acc[4][4 * groups], operands *o, const float p[TILE][LINE],
              const ft_cuda_attention_args &a, const ft_attention_tile &query_tile, int first)
{
    const float *v =
        (const float *) a.v + (query_tile.first + first) * row_stride(a) + query_tile.column;
    for (int from = 0; from < TILE && first + from < query_tile.length; from += KEYS) {
        __syncthreads();
        for (int i = (int) threadIdx.x; i < KEYS * 64 * groups; i += THREADS) {
            int key = from + i / (64 * groups), col = i % (64 * groups);
            bool inside = first + key < query_tile.length && col < a.head_size;
            o->value[key - from][col] =
                inside ? v[(size_t) key * row_stride(a) + (size_t) col] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int key = 0; key < KEYS; key++) {
            float4 x = *(const float4 *) &p[from + key][4 * thread_y()];
            const float xs[] = { x.x, x.y, x.z, x.w };
#pragma unroll
            for (int group = 0; group < groups; group++) {
                float4 y = *(const float4 *) &o->value[key][64 * group + 4 * thread_x()];
                const float ys[] = { y.x, y.y, y.z, y.w };
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    float *sum = &acc[i / 4][4 * group + i % 4];
                    *sum = fmaf(xs[i / 4], ys[i % 4], *sum);
                }
            }
        }
    }
}

/* Grid: query tiles and heads; blockDim.x = 256; heads of up to 64 groups columns. */
template <int groups>
static __global__ void __launch_bounds__(THREADS)
    attention_kernel(const __grid_constant__ ft_cuda_attention_args a,
                     const __grid_constant__ ft_cuda_counts counts)
{
    __shared__ operands o;
    __shared__ __align__(16) float p[TILE][LINE];
    ft_attention_tile query_tile;
    ft_pdl_wait();
    if (!ft_attention_tile_of(&query_tile, a))
        return;
    softmax_stats rows[4];
    ft_local_counts local_counts = {};
    float s[4][4], acc[4][4 * groups] = {};
    softmax_pass(rows, &o, a, query_tile);
    ft_pdl_launch_dependents();
    for (int first = 0; first < query_tile.length; first += TILE) {
        compute_qk(s, &o, a, query_tile, first);
        store_probabilities(p, s, rows, &local_counts, counts, query_tile.queries,
                            query_tile.length - first);
        accumulate_pv<groups>(acc, &o, p, a, query_tile, first);
    }
    if (counts.key != NULL)
        ft_flush_counts(counts, local_counts);
    for (int i = 0; i < 4; i++) {
        int query = 4 * thread_y() + i;
        float *y = (float *) a.y + (query_tile.first + query_tile.query + query) * row_stride(a) +
                   query_tile.column;
        for (int j = 0; j < 4 * groups; j++) {
            int col = j / 4 * 64 + 4 * thread_x() + j % 4;
            if (query < query_tile.queries && col < a.head_size)
                y[col] = acc[i][j];
        }
    }
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int groups>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_attention_args *a)
{
    ft_cuda_counts none = {};
    return ft_launch(attention_kernel<groups>, ft_attention_grid(a), dim3(THREADS), 0, stream,
                     props->has_pdl, 1, *a, a->counts != NULL ? *a->counts : none);
}

int ft_cuda_attention_f32(const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_attention_args *a)
{
    return a->head_size <= 64    ? launch<1>(props, stream, a)
           : a->head_size <= 128 ? launch<2>(props, stream, a)
                                 : launch<4>(props, stream, a);
}
