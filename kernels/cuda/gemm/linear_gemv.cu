/*
 * linear_gemv.cu - y = act(x . w^T + b) in float for few rows: poolers, classifiers.
 *
 * With few rows the weights are nearly all of the traffic, and the kernel is bound by latency.  A
 * thread block computes 8 rows by 4 columns and splits k across its warps, and for k up to 1,024
 * all loads are issued before the first multiplication.  Weights are loaded before the predecessor
 * has finished.
 *
 * An element of y is always summed in the same order: k slices of 32 lanes are assigned to warps
 * round-robin, a lane adds its elements in order, then lanes are reduced as a tree and warps are
 * added in order.  A sequence therefore has the same bits alone and in any batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/f16/gemm_f16.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/rows.cuh"

enum { LANES = 32, WARPS = 8, ROWS = 8, COLS = 4 };
static_assert(ROWS * COLS == LANES, "each lane stores one element");

/*
 * Load N consecutive elements from each of the matrix rows first .. first + COUNT - 1.  Rows beyond
 * the matrix are clamped to the last one.  An offset beyond the row reads its start, which the
 * caller discards.
 */
template <ft_dtype dtype, int N, int COUNT>
__device__ __forceinline__ void load_rows(ft_raw_vec<N> (&bits)[COUNT], void *data, size_t first,
                                          size_t rows, size_t length, size_t at)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        size_t row = first + i < rows ? first + i : rows - 1;
        ft_load_raw_as<dtype, N>(bits[i], data, row * length + (at < length ? at : 0));
    }
}

template <ft_dtype dtype, int N, int COUNT>
__device__ __forceinline__ void unpack(float (&v)[COUNT][N], const ft_raw_vec<N> (&bits)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        ft_unpack_as<dtype, N>(v[i], bits[i]);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/*
 * Reduce each of 32 values across the lanes; v[0] of lane i receives the sum of value i.  At each
 * level a lane sends half of its values and keeps the others, which takes 31 shuffles instead of
 * 160.
 */
template <int OFFSET> __device__ __forceinline__ void reduce_lanes(float (&v)[LANES])
{
    bool upper = (threadIdx.x & OFFSET) != 0;
#pragma unroll
    for (int i = 0; i < OFFSET; i++) {
        float sent = upper ? v[i] : v[i + OFFSET], kept = upper ? v[i + OFFSET] : v[i];
        v[i] = kept + __shfl_xor_sync(~0u, sent, OFFSET);
    }
    if constexpr (OFFSET > 1)
        reduce_lanes<OFFSET / 2>(v);
}

template <int N>
__device__ __forceinline__ void fma_tile(float (&sum)[LANES], const float (&x)[ROWS][N],
                                         const float (&w)[COLS][N])
{
#pragma unroll
    for (int i = 0; i < N * LANES; i++) {
        float *one = &sum[i % LANES];
        *one = fmaf(x[i % LANES / COLS][i / LANES], w[i % COLS][i / LANES], *one);
    }
}

/* Partial sums over the k slices of this warp. */
template <ft_dtype X, ft_dtype W, int N>
__device__ __forceinline__ float accumulate_k(const ft_cuda_float_gemm_args &f, size_t row,
                                              size_t col, unsigned warp, unsigned lane)
{
    const size_t k = f.k, slice = LANES * N;
    ft_raw_vec<N> w_bits[COLS], x_bits[ROWS];
    float sum[LANES] = {};
    load_rows<W>(w_bits, (void *) f.w, col, f.n, k, warp * slice + lane * N);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
#pragma unroll 1
    for (size_t from = warp * slice; from < k; from += WARPS * slice) {
        size_t at = from + lane * N, next = at + WARPS * slice;
        float x[ROWS][N], w[COLS][N];
        load_rows<X>(x_bits, (void *) f.x, row, f.m, k, at);
        unpack<W>(w, w_bits);
        unpack<X>(x, x_bits);
        if (at < k)
            fma_tile<N>(sum, x, w);
        load_rows<W>(w_bits, (void *) f.w, col, f.n, k, next);
    }
    reduce_lanes<LANES / 2>(sum);
    return sum[0];
}

/* grid = (columns of y / 4, rows / 8) */
template <ft_dtype X, ft_dtype W, int N>
static __global__ void __launch_bounds__(LANES *WARPS, 2)
    gemv_kernel(const __grid_constant__ ft_cuda_float_gemm_args f)
{
    __shared__ float partial[WARPS][LANES];
    unsigned warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    size_t row = (size_t) blockIdx.y * ROWS, col = (size_t) blockIdx.x * COLS;
    size_t own_row = row + lane / COLS, own_col = col + lane % COLS;
    bool inside = own_row < f.m && own_col < f.n;
    float bias = f.bias != NULL && inside ? f.bias[own_col] : 0.0f;
    partial[warp][lane] = accumulate_k<X, W, N>(f, row, col, warp, lane);
    __syncthreads();
    if (warp > 0 || !inside)
        return;
    float value = partial[0][lane];
#pragma unroll
    for (int i = 1; i < WARPS; i++)
        value += partial[i][lane];
    if (f.bias != NULL)
        value += bias;
    value = ft_activate(f.activation, value);
    ft_store<1>(f.y, f.y_dtype, own_row * f.n + own_col, &value);
}

/* ------------------------------------------------------------------------------------------ */

template <ft_dtype X, ft_dtype W>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p)
{
    dim3 grid(ft_ceil_div(p->n, COLS), ft_ceil_div(p->m, ROWS));
    return ft_launch(p->k % 4 == 0 ? gemv_kernel<X, W, 4> : gemv_kernel<X, W, 1>, grid,
                     LANES * WARPS, 0, stream, props->has_pdl, 1, *p);
}

template <ft_dtype X>
static int launch_x_type(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_float_gemm_args *p)
{
    return p->w_dtype == FT_F16    ? launch<X, FT_F16>(props, stream, p)
           : p->w_dtype == FT_BF16 ? launch<X, FT_BF16>(props, stream, p)
                                   : launch<X, FT_F32>(props, stream, p);
}

/* gridDim.y is limited to 65535, so more rows take several launches. */
int ft_cuda_float_gemv(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_float_gemm_args *p)
{
    ft_cuda_float_gemm_args chunk = *p;
    const size_t max_rows = (size_t) 65535 * ROWS;
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += max_rows) {
        chunk.m = p->m - row < max_rows ? p->m - row : max_rows;
        chunk.x = (const char *) p->x + row * p->k * ft_dtype_size(p->x_dtype);
        chunk.y = (char *) p->y + row * p->n * ft_dtype_size(p->y_dtype);
        status = p->x_dtype == FT_F16    ? launch_x_type<FT_F16>(props, stream, &chunk)
                 : p->x_dtype == FT_BF16 ? launch_x_type<FT_BF16>(props, stream, &chunk)
                                         : launch_x_type<FT_F32>(props, stream, &chunk);
    }
    return status;
}

int ft_cuda_linear_gemv(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = ft_cuda_float_gemm_args_of(args);
    return ft_cuda_float_gemv(args->props, args->stream, &p);
}
