/*
 * linear_gemv.cu - y = act(x . w^T + b) in floats for few rows: poolers, classifiers.
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
#include "kernels/cuda/gemm/f16/gemm_f16.h"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/rows.cuh"

enum { LANES = 32, WARPS = 8, ROWS = 8, COLS = 4 };
static_assert(ROWS * COLS == LANES, "each lane finishes one element");

/*
 * N neighbours of each of lines first .. first + COUNT - 1 of a matrix; behind its end, of the last
 * line.  Behind the end of a line, of its start: the caller leaves them out.
 */
template <ft_dtype dtype, int N, int COUNT>
__device__ __forceinline__ void load_lines(ft_raw_vec<N> (&bits)[COUNT], void *data, size_t first,
                                           size_t lines, size_t length, size_t at)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        size_t line = first + i < lines ? first + i : lines - 1;
        ft_load_raw_as<dtype, N>(bits[i], data, line * length + (at < length ? at : 0));
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
 * Add up each of 32 numbers over the lanes; v[0] of lane i becomes number i.  A lane hands over
 * half of what it has and keeps the rest, so this takes 31 exchanges and not 160.
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

/* This warp's share of k. */
template <ft_dtype X, ft_dtype W, int N>
__device__ __forceinline__ float accumulate_k(const ft_cuda_float_gemm_args &f, size_t row,
                                              size_t col, unsigned warp, unsigned lane)
{
    const size_t k = f.k, slice = LANES * N;
    ft_raw_vec<N> w_bits[COLS], x_bits[ROWS];
    float sum[LANES] = {};
    load_lines<W>(w_bits, (void *) f.w, col, f.n, k, warp * slice + lane * N);
    ft_pdl_wait();
    ft_pdl_launch_dependents();
#pragma unroll 1
    for (size_t from = warp * slice; from < k; from += WARPS * slice) {
        size_t at = from + lane * N, next = at + WARPS * slice;
        float x[ROWS][N], w[COLS][N];
        load_lines<X>(x_bits, (void *) f.x, row, f.m, k, at);
        unpack<W>(w, w_bits);
        unpack<X>(x, x_bits);
        if (at < k)
            fma_tile<N>(sum, x, w);
        load_lines<W>(w_bits, (void *) f.w, col, f.n, k, next);
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

/* Grids have up to 65535 tiles of rows. */
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

static ft_cuda_float_gemm_args gemm_args_of(const ft_cuda_args *args)
{
    const ft_weight *weight = args->weight[0];
    ft_cuda_float_gemm_args p = {};
    p.m = args->out.rows;
    p.n = args->out.cols;
    p.k = args->in[0].cols;
    p.x = args->in[0].data;
    p.w = weight->data;
    p.x_dtype = args->in[0].dtype;
    p.w_dtype = weight->dtype;
    p.y_dtype = args->out.dtype;
    p.bias = args->weight[1] == NULL ? NULL : (const float *) args->weight[1]->data;
    p.activation = args->op->attr.activation;
    p.y = args->out.data;
    return p;
}

int ft_cuda_linear_gemv(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = gemm_args_of(args);
    return ft_cuda_float_gemv(args->props, args->stream, &p);
}

int ft_cuda_linear_batch_invariant(const ft_cuda_args *args)
{
    ft_cuda_float_gemm_args p = gemm_args_of(args);
    return ft_cuda_float_gemm_batch_invariant(args->props, args->stream, &p);
}

/* ---- Groups --------------------------------------------------------------------------------- */

/* The GEMMs of a group; false where one kernel does not take them all. */
static bool describe(ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED], const ft_cuda_group *group)
{
    bool fine = ft_cuda_is_float_group(group) && group->linear[0]->batch != NULL &&
                group->linear[0]->batch->batch_invariant;
    for (int i = 0; fine && i < group->linears; i++) {
        p[i] = gemm_args_of(group->linear[i]);
        fine = p[i].y_dtype == p[0].y_dtype && p[i].activation == p[0].activation &&
               ft_cuda_f16_wgmma_supports(group->linear[i]->props, &p[i]);
    }
    return fine;
}

extern "C" bool ft_cuda_group_f16_supports(const ft_cuda_group *group)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    return describe(p, group);
}

extern "C" int ft_cuda_group_f16(const ft_cuda_group *group)
{
    ft_cuda_float_gemm_args p[FT_CUDA_MAX_FUSED];
    const ft_cuda_args *first = group->linear[0];
    return describe(p, group) ? ft_cuda_f16_wgmma(first->props, first->stream, p, group->linears)
                              : (int) cudaErrorNotSupported;
}
