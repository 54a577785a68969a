/*
 * embed.cu - each token's vector is a sum of table rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"

/*
 * A block takes 64 vectors of columns, of 4 tokens at a time: of 768 columns, all by three blocks.
 * Where there are many tokens, a thread has those of four on the way: their ids come first.
 */
enum { ACROSS = 64, DOWN = 4, STEPS = 4, MANY = 1024 };

typedef struct embed {
    const void *table[FT_MAX_IN]; /* NULL: not there */
    ft_dtype dtype[FT_MAX_IN];
    int32_t *index[FT_MAX_IN];
    ft_cuda_view out;
} embed;

/* N columns of a token; the sum begins at 0, as the CPU's does. */
template <int N>
__device__ __forceinline__ void finish(const embed &e, size_t at, const ft_bits<N> bits[FT_MAX_IN])
{
    float sum[N] = {};
#pragma unroll
    for (int i = 0; i < FT_MAX_IN; i++)
        if (e.table[i] != NULL) {
            float part[N];
            ft_unpack<N>(part, bits[i], e.dtype[i]);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += part[j];
        }
    ft_store<N>(e.out.data, e.out.dtype, at, sum);
}

template <int N, int steps>
static __global__ void __launch_bounds__(ACROSS *DOWN) embed_kernel(const embed e)
{
    size_t first = (size_t) blockIdx.x * DOWN * steps + threadIdx.y, last = e.out.rows - 1;
    size_t cols = e.out.cols, col = ((size_t) blockIdx.y * ACROSS + threadIdx.x) * N;
    int32_t index[steps][FT_MAX_IN];
    ft_bits<N> bits[steps][FT_MAX_IN];
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (col >= cols)
        return;
#pragma unroll
    for (int i = 0; i < steps * FT_MAX_IN; i++) {
        size_t row = first + i / FT_MAX_IN * DOWN;
        if (e.table[i % FT_MAX_IN] != NULL)
            index[i / FT_MAX_IN][i % FT_MAX_IN] = e.index[i % FT_MAX_IN][row < last ? row : last];
    }
#pragma unroll
    for (int i = 0; i < steps * FT_MAX_IN; i++)
        if (e.table[i % FT_MAX_IN] != NULL)
            ft_fetch<N>(bits[i / FT_MAX_IN][i % FT_MAX_IN], (void *) e.table[i % FT_MAX_IN],
                        e.dtype[i % FT_MAX_IN],
                        (size_t) index[i / FT_MAX_IN][i % FT_MAX_IN] * cols + col);
#pragma unroll
    for (int s = 0; s < steps; s++)
        if (first + s * DOWN <= last)
            finish<N>(e, (first + s * DOWN) * cols + col, bits[s]);
}

template <int N, int steps> static int launch(const ft_cuda_args *args, const embed &e)
{
    dim3 grid(ft_blocks(e.out.rows, DOWN * steps), ft_blocks(e.out.cols, ACROSS * N));
    return ft_launch(embed_kernel<N, steps>, grid, dim3(ACROSS, DOWN), 0, args->stream,
                     args->chip->overlaps, 1, e);
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_embed(const ft_cuda_args *args)
{
    embed e = {};
    e.out = args->out;
    for (int i = 0; i < FT_MAX_IN; i++)
        if (args->weight[i] != NULL) {
            e.table[i] = args->weight[i]->data;
            e.dtype[i] = args->weight[i]->dtype;
            e.index[i] = (int32_t *) args->in[i].data;
        }
    if (e.out.rows == 0)
        return (int) cudaSuccess;
    if (e.out.cols % 4 != 0)
        return launch<1, STEPS>(args, e);
    return e.out.rows < MANY ? launch<4, 1>(args, e) : launch<4, STEPS>(args, e);
}
