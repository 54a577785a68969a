/*
 * embed.cu - embedding lookup: each token's vector is a sum of table rows.
 *
 * If a token was sampled on the device, the host does not know its id yet. It then passes -1 -
 * slot, which stands for the last token of that slot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"

/* A CTA processes 64 vectors of columns of 4 tokens; three CTAs cover 768 columns. */
enum { COL_THREADS = 64, ROWS = 4 };

typedef struct embed_args {
    const void *table[FT_MAX_IN]; /* NULL: no such table */
    ft_dtype dtype[FT_MAX_IN];
    int32_t *index[FT_MAX_IN]; /* NULL: the position of the token in its sequence, plus `offset` */
    int32_t *last_token;       /* last token of each slot; NULL: all ids are tokens */
    const int32_t *seq_id, *start, *n_past;
    int32_t offset;
    float scale; /* of word embeddings */
    ft_view out;
} embed_args;

/* A padding row of the batch bucket has no sequence; it may read any row of the table. */
__device__ __forceinline__ size_t position_of(const embed_args &e, size_t row)
{
    int32_t sequence = e.seq_id[row];
    int32_t position = sequence < 0 ? 0 : e.n_past[sequence] + (int32_t) row - e.start[sequence];
    return (size_t) (e.offset + position);
}

/* The row of table i for a token. */
__device__ __forceinline__ size_t table_row(const embed_args &e, int i, size_t row)
{
    if (e.index[i] == NULL)
        return position_of(e, row);
    int32_t index = e.index[i][row];
    return (size_t) (i == 0 && index < 0 ? e.last_token[-1 - index] : index);
}

/* Computes N columns of a token, whose ids come first. The sum starts at 0, as on the CPU. */
template <int N>
static __global__ void __launch_bounds__(COL_THREADS *ROWS) embed_kernel(const embed_args e)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * COL_THREADS + threadIdx.x) * N;
    size_t index[FT_MAX_IN];
    ft_raw_vec<N> bits[FT_MAX_IN];
    float sum[N] = {};
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= e.out.cols || row >= e.out.rows)
        return;
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL)
            index[i] = table_row(e, i, row);
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL)
            ft_load_raw<N>(bits[i], (void *) e.table[i], e.dtype[i], index[i] * e.out.cols + col);
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL) {
            float values[N];
            ft_unpack<N>(values, bits[i], e.dtype[i]);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += i == 0 ? values[j] * e.scale : values[j];
        }
    ft_store<N>(e.out.data, e.out.dtype, row * e.out.cols + col, sum);
}

template <int N> static int launch(const ft_cuda_args *args, const embed_args &e)
{
    dim3 grid(ft_ceil_div(e.out.rows, ROWS), ft_ceil_div(e.out.cols, COL_THREADS * N));
    return ft_launch(embed_kernel<N>, grid, dim3(COL_THREADS, ROWS), 0, args->stream,
                     args->props->has_pdl, 1, e);
}

/* ---- Operation ----------------------------------------------------------------------------- */

extern "C" int ft_cuda_embed(const ft_cuda_args *args)
{
    embed_args e = {};
    e.out = args->out;
    e.last_token = (int32_t *) args->state[FT_STATE_LAST_TOKEN].data;
    e.seq_id = args->batch->seq_id;
    e.start = args->batch->start;
    e.n_past = args->batch->n_past;
    e.offset = args->op->attr.position_offset;
    e.scale = args->op->attr.embed_scale;
    for (int i = 0; i < FT_MAX_IN; i++)
        if (args->weight[i] != NULL) {
            e.table[i] = args->weight[i]->data;
            e.dtype[i] = args->weight[i]->dtype;
            e.index[i] = (int32_t *) args->in[i].data;
        }
    if (e.out.rows == 0)
        return (int) cudaSuccess;
    return e.out.cols % 4 == 0 ? launch<4>(args, e) : launch<1>(args, e);
}
