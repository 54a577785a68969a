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
enum { ACROSS = 64, ROWS = 4 };

typedef struct embed {
    const void *table[FT_MAX_IN]; /* NULL: no such table */
    ft_dtype dtype[FT_MAX_IN];
    int32_t *index[FT_MAX_IN]; /* NULL: the position of the token in its sequence, plus `offset` */
    int32_t *last;             /* last token of each slot; NULL: all ids are tokens */
    const int32_t *owner, *start, *past;
    int32_t offset;
    float scale; /* of word embeddings */
    ft_cuda_view out;
} embed;

/* A padding row of the batch bucket has no sequence; it may read any row of the table. */
__device__ __forceinline__ size_t place_of(const embed &e, size_t row)
{
    int32_t sequence = e.owner[row];
    int32_t place = sequence < 0 ? 0 : e.past[sequence] + (int32_t) row - e.start[sequence];
    return (size_t) (e.offset + place);
}

/* The row of table i for a token. */
__device__ __forceinline__ size_t index_of(const embed &e, int i, size_t row)
{
    if (e.index[i] == NULL)
        return place_of(e, row);
    int32_t index = e.index[i][row];
    return (size_t) (i == 0 && index < 0 ? e.last[-1 - index] : index);
}

/* Computes N columns of a token, whose ids come first. The sum starts at 0, as on the CPU. */
template <int N> static __global__ void __launch_bounds__(ACROSS *ROWS) embed_kernel(const embed e)
{
    size_t row = (size_t) blockIdx.x * ROWS + threadIdx.y;
    size_t col = ((size_t) blockIdx.y * ACROSS + threadIdx.x) * N;
    size_t index[FT_MAX_IN];
    ft_bits<N> bits[FT_MAX_IN];
    float sum[N] = {};
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (col >= e.out.cols || row >= e.out.rows)
        return;
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL)
            index[i] = index_of(e, i, row);
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL)
            ft_fetch<N>(bits[i], (void *) e.table[i], e.dtype[i], index[i] * e.out.cols + col);
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL) {
            float part[N];
            ft_unpack<N>(part, bits[i], e.dtype[i]);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += i == 0 ? part[j] * e.scale : part[j];
        }
    ft_store<N>(e.out.data, e.out.dtype, row * e.out.cols + col, sum);
}

template <int N> static int launch(const ft_cuda_args *args, const embed &e)
{
    dim3 grid(ft_cover(e.out.rows, ROWS), ft_cover(e.out.cols, ACROSS * N));
    return ft_launch(embed_kernel<N>, grid, dim3(ACROSS, ROWS), 0, args->stream,
                     args->chip->overlaps, 1, e);
}

/* ---- Operation ----------------------------------------------------------------------------- */

extern "C" int ft_cuda_embed(const ft_cuda_args *args)
{
    embed e = {};
    e.out = args->out;
    e.last = (int32_t *) args->state[FT_STATE_LAST].data;
    e.owner = args->batch->owner;
    e.start = args->batch->start;
    e.past = args->batch->past;
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
