/*
 * linear_few.cu - y = act(x . w^T + b) in floats for few rows: poolers, classifiers.
 *
 * With few rows the weights are all the traffic and latency is all the time, so the kernel asks for
 * everything at once: a block makes 8 rows by 4 columns, its warps share k, and for k up to 1,024
 * every load is under way before the first product.  Weights come before the predecessor has ended.
 *
 * An element of y is always added in the same order: slabs of 32 lanes go to the warps in turns, a
 * lane adds its elements one after the other, then lanes are added as a tree and warps in order.
 * So a sequence gives the same bits alone and in any batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/rows.cuh"

enum { LANES = 32, WARPS = 8, ROWS = 8, COLS = 4 };
static_assert(ROWS * COLS == LANES, "each lane finishes one element");

typedef struct few_args {
    ft_cuda_view x, y;
    const void *w; /* [y.cols, x.cols] */
    ft_dtype w_dtype;
    const float *bias; /* NULL: none */
    ft_activation activation;
} few_args;

/*
 * N neighbours of each of lines first .. first + COUNT - 1 of a matrix; behind its end, of the last
 * line.  Behind the end of a line, of its start: the caller leaves them out.
 */
template <ft_dtype dtype, int N, int COUNT>
__device__ __forceinline__ void fetch(ft_bits<N> (&bits)[COUNT], void *data, size_t first,
                                      size_t lines, size_t length, size_t at)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        size_t line = first + i < lines ? first + i : lines - 1;
        ft_fetch_as<dtype, N>(bits[i], data, line * length + (at < length ? at : 0));
    }
}

template <ft_dtype dtype, int N, int COUNT>
__device__ __forceinline__ void unpack(float (&v)[COUNT][N], const ft_bits<N> (&bits)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        ft_unpack_as<dtype, N>(v[i], bits[i]);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/*
 * Add up each of 32 numbers over the lanes; v[0] of lane i becomes number i.  A lane hands over
 * half of what it has and keeps the rest, so this takes 31 exchanges and not 160.
 */
template <int APART> __device__ __forceinline__ void add_lanes(float (&v)[LANES])
{
    bool upper = (threadIdx.x & APART) != 0;
#pragma unroll
    for (int i = 0; i < APART; i++) {
        float given = upper ? v[i] : v[i + APART], kept = upper ? v[i + APART] : v[i];
        v[i] = kept + __shfl_xor_sync(~0u, given, APART);
    }
    if constexpr (APART > 1)
        add_lanes<APART / 2>(v);
}

template <int N>
__device__ __forceinline__ void multiply(float (&sum)[LANES], const float (&x)[ROWS][N],
                                         const float (&w)[COLS][N])
{
#pragma unroll
    for (int i = 0; i < N * LANES; i++) {
        float *one = &sum[i % LANES];
        *one = fmaf(x[i % LANES / COLS][i / LANES], w[i % COLS][i / LANES], *one);
    }
}

/* This warp's share of k. */
template <ft_dtype X, ft_dtype W, int N>
__device__ __forceinline__ float add_share(const few_args &f, size_t row, size_t col, unsigned warp,
                                           unsigned lane)
{
    const size_t k = f.x.cols, slab = LANES * N;
    ft_bits<N> w_bits[COLS], x_bits[ROWS];
    float sum[LANES] = {};
    fetch<W>(w_bits, (void *) f.w, col, f.y.cols, k, warp * slab + lane * N);
    ft_wait_for_predecessor();
    ft_let_successor_begin();
#pragma unroll 1
    for (size_t from = warp * slab; from < k; from += WARPS * slab) {
        size_t at = from + lane * N, next = at + WARPS * slab;
        float x[ROWS][N], w[COLS][N];
        fetch<X>(x_bits, f.x.data, row, f.y.rows, k, at);
        unpack<W>(w, w_bits);
        unpack<X>(x, x_bits);
        if (at < k)
            multiply<N>(sum, x, w);
        fetch<W>(w_bits, (void *) f.w, col, f.y.cols, k, next);
    }
    add_lanes<LANES / 2>(sum);
    return sum[0];
}

/* grid = (columns of y / 4, rows / 8) */
template <ft_dtype X, ft_dtype W, int N>
static __global__ void __launch_bounds__(LANES *WARPS, 2)
    few_kernel(const __grid_constant__ few_args f)
{
    __shared__ float share[WARPS][LANES];
    unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    size_t row = (size_t) blockIdx.y * ROWS, col = (size_t) blockIdx.x * COLS;
    size_t own_row = row + lane / COLS, own_col = col + lane % COLS;
    bool inside = own_row < f.y.rows && own_col < f.y.cols;
    float bias = f.bias != NULL && inside ? f.bias[own_col] : 0.0f;
    share[warp][lane] = add_share<X, W, N>(f, row, col, warp, lane);
    __syncthreads();
    if (warp > 0 || !inside)
        return;
    float value = share[0][lane];
#pragma unroll
    for (int i = 1; i < WARPS; i++)
        value += share[i][lane];
    if (f.bias != NULL)
        value += bias;
    value = ft_activate(f.activation, value);
    ft_store<1>(f.y.data, f.y.dtype, own_row * f.y.cols + own_col, &value);
}

/* ------------------------------------------------------------------------------------------ */

template <ft_dtype X, ft_dtype W> static int launch(const ft_cuda_args *args, const few_args &f)
{
    dim3 grid(ft_blocks(f.y.cols, COLS), ft_blocks(f.y.rows, ROWS));
    return ft_launch(f.x.cols % 4 == 0 ? few_kernel<X, W, 4> : few_kernel<X, W, 1>, grid,
                     LANES * WARPS, 0, args->stream, args->chip->overlaps, 1, f);
}

template <ft_dtype X> static int launch_for(const ft_cuda_args *args, const few_args &f)
{
    return f.w_dtype == FT_F16    ? launch<X, FT_F16>(args, f)
           : f.w_dtype == FT_BF16 ? launch<X, FT_BF16>(args, f)
                                  : launch<X, FT_F32>(args, f);
}

int ft_cuda_linear_few(const ft_cuda_args *args)
{
    few_args f = {};
    f.x = args->in[0], f.y = args->out;
    f.w = args->weight[0]->data;
    f.w_dtype = args->weight[0]->dtype;
    f.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    f.activation = args->op->attr.activation;
    return f.x.dtype == FT_F16    ? launch_for<FT_F16>(args, f)
           : f.x.dtype == FT_BF16 ? launch_for<FT_BF16>(args, f)
                                  : launch_for<FT_F32>(args, f);
}
