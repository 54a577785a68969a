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
    float value[KEYS][FT_ATTENTION_WIDEST];
} operands;

/* Position of a thread's 4 x 4 scores: queries 4 y .. 4 y + 3, keys 4 x .. 4 x + 3 of the tile. */
static __device__ __forceinline__ int x_of()
{
    return threadIdx.x % 16;
}

static __device__ __forceinline__ int y_of()
{
    return threadIdx.x / 16;
}

static __device__ __forceinline__ size_t cols_of(const ft_cuda_heads &a)
{
    return (size_t) a.heads * (size_t) a.head_size;
}

/*
 * Loads the columns from .. from + DEPTH - 1 of 64 rows, transposed. Elements out of range are 0.
 */
static __device__ __forceinline__ void stage_columns(float to[DEPTH][LINE], const ft_cuda_heads &a,
                                                     const float *rows, int count, int from)
{
    for (int i = (int) threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        int row = i / DEPTH, col = i % DEPTH;
        bool inside = row < count && from + col < a.head_size;
        to[col][row] = inside ? rows[(size_t) row * cols_of(a) + (size_t) (from + col)] : 0.0f;
    }
}

/* The scores of 64 queries and the 64 keys from `first` on. */
static __device__ __forceinline__ void score(float s[4][4], operands *o, const ft_cuda_heads &a,
                                             const ft_attention_task &task, int first)
{
    const float *q = (const float *) a.q + (task.first + task.query) * cols_of(a) + task.column;
    const float *k = (const float *) a.k + (task.first + first) * cols_of(a) + task.column;
    for (int i = 0; i < 16; i++)
        s[i / 4][i % 4] = 0.0f;
    for (int from = 0; from < a.head_size; from += DEPTH) {
        __syncthreads();
        stage_columns(o->columns.query, a, q, task.queries, from);
        stage_columns(o->columns.key, a, k, task.length - first, from);
        __syncthreads();
#pragma unroll 8
        for (int col = 0; col < DEPTH; col++) {
            float4 x = *(const float4 *) &o->columns.query[col][4 * y_of()];
            float4 y = *(const float4 *) &o->columns.key[col][4 * x_of()];
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
typedef struct softmax {
    float most, sum;
} softmax;

static __device__ __forceinline__ softmax both(softmax a, softmax b)
{
    float most = fmaxf(a.most, b.most);
    if (most == -INFINITY)
        return a;
    return softmax{ most, a.sum * ft_exp(a.most - most) + b.sum * ft_exp(b.most - most) };
}

static __device__ __forceinline__ void see(softmax *row, const float s[4], int keys)
{
    for (int i = 0; i < 4; i++)
        if (4 * x_of() + i < keys) {
            if (s[i] > row->most) {
                row->sum *= ft_exp(row->most - s[i]);
                row->most = s[i];
            }
            row->sum += ft_exp(s[i] - row->most);
        }
}

/* First pass: softmax statistics of the thread's four rows, over all keys. */
static __device__ __forceinline__ void
first_sweep(softmax rows[4], operands *o, const ft_cuda_heads &a, const ft_attention_task &task)
{
    for (int i = 0; i < 4; i++)
        rows[i] = softmax{ -INFINITY, 0.0f };
    for (int first = 0; first < task.length; first += TILE) {
        float s[4][4];
        score(s, o, a, task, first);
#pragma unroll
        for (int i = 0; i < 4; i++)
            see(&rows[i], s[i], task.length - first);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        for (int far = 8; far > 0; far /= 2) {
            softmax other = { __shfl_xor_sync(~0u, rows[i].most, far),
                              __shfl_xor_sync(~0u, rows[i].sum, far) };
            /* both lanes add in the same order, so that they get the same result */
            rows[i] = (x_of() & far) == 0 ? both(rows[i], other) : both(other, rows[i]);
        }
}

/* Writes the probabilities, transposed, to `to`, and counts those of existing keys and queries. */
static __device__ __forceinline__ void put_probabilities(float to[TILE][LINE], const float s[4][4],
                                                         const softmax rows[4], ft_seen *seen,
                                                         const ft_cuda_counts &counts, int queries,
                                                         int keys)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float share = 1.0f / rows[i].sum;
        for (int j = 0; j < 4; j++) {
            int query = 4 * y_of() + i, key = 4 * x_of() + j;
            float p = key < keys ? ft_exp(s[i][j] - rows[i].most) * share : 0.0f;
            to[key][query] = p;
            if (counts.key != NULL && key < keys && query < queries)
                ft_count_one(counts, *seen, p);
        }
    }
}

/*
 * sums += p . v for the 64 keys from `first` on. A thread holds columns 4 x .. 4 x + 3 of each 64.
 */
template <int groups>
static __device__ __forceinline__ void mix(float sums[4][4 * groups], operands *o,
                                           const float p[TILE][LINE], const ft_cuda_heads &a,
                                           const ft_attention_task &task, int first)
{
    const float *v = (const float *) a.v + (task.first + first) * cols_of(a) + task.column;
    for (int from = 0; from < TILE && first + from < task.length; from += KEYS) {
        __syncthreads();
        for (int i = (int) threadIdx.x; i < KEYS * 64 * groups; i += THREADS) {
            int key = from + i / (64 * groups), col = i % (64 * groups);
            bool inside = first + key < task.length && col < a.head_size;
            o->value[key - from][col] = inside ? v[(size_t) key * cols_of(a) + (size_t) col] : 0.0f;
        }
        __syncthreads();
#pragma unroll 4
        for (int key = 0; key < KEYS; key++) {
            float4 x = *(const float4 *) &p[from + key][4 * y_of()];
            const float xs[] = { x.x, x.y, x.z, x.w };
#pragma unroll
            for (int group = 0; group < groups; group++) {
                float4 y = *(const float4 *) &o->value[key][64 * group + 4 * x_of()];
                const float ys[] = { y.x, y.y, y.z, y.w };
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    float *sum = &sums[i / 4][4 * group + i % 4];
                    *sum = fmaf(xs[i / 4], ys[i % 4], *sum);
                }
            }
        }
    }
}

/* Grid: query tiles and heads; blockDim.x = 256; heads of up to 64 groups columns. */
template <int groups>
static __global__ void __launch_bounds__(THREADS)
    attend_kernel(const __grid_constant__ ft_cuda_heads a,
                  const __grid_constant__ ft_cuda_counts counts)
{
    __shared__ operands o;
    __shared__ __align__(16) float p[TILE][LINE];
    ft_attention_task task;
    ft_wait_for_predecessor();
    if (!ft_take_task(&task, a))
        return;
    softmax rows[4];
    ft_seen seen = {};
    float s[4][4], sums[4][4 * groups] = {};
    first_sweep(rows, &o, a, task);
    ft_let_successor_begin();
    for (int first = 0; first < task.length; first += TILE) {
        score(s, &o, a, task, first);
        put_probabilities(p, s, rows, &seen, counts, task.queries, task.length - first);
        mix<groups>(sums, &o, p, a, task, first);
    }
    if (counts.key != NULL)
        ft_count_seen(counts, seen);
    for (int i = 0; i < 4; i++) {
        int query = 4 * y_of() + i;
        float *y = (float *) a.y + (task.first + task.query + query) * cols_of(a) + task.column;
        for (int j = 0; j < 4 * groups; j++) {
            int col = j / 4 * 64 + 4 * x_of() + j % 4;
            if (query < task.queries && col < a.head_size)
                y[col] = sums[i][j];
        }
    }
}

/* ---- Launch -------------------------------------------------------------------------------- */

template <int groups>
static int attend(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    ft_cuda_counts none = {};
    return ft_launch(attend_kernel<groups>, ft_attention_grid(a), dim3(THREADS), 0, stream,
                     chip->overlaps, 1, *a, a->counts != NULL ? *a->counts : none);
}

int ft_cuda_attend_f32(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    return a->head_size <= 64    ? attend<1>(chip, stream, a)
           : a->head_size <= 128 ? attend<2>(chip, stream, a)
                                 : attend<4>(chip, stream, a);
}
