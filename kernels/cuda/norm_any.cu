/*
 * norm_any.cu - layer norm of rows whose width is no multiple of eight, or too large for registers.
 *
 * A block for each row, a thread for each part of its sums: kernels/norm.h.  A thread keeps its
 * elements in shared memory; rows too wide for that are read again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/norm.cuh"

/* Columns that are kept: any device gives a block 48 KiB of shared memory. */
enum { THREADS = FT_NORM_PARTS, MOST_KEPT = 10240 };

/* What is normalized, elements col, col + THREADS, ...: no load waits for the one before. */
template <int count>
__device__ __forceinline__ void load_part(float v[count], const ft_cuda_norm_args &n, size_t at,
                                          size_t col)
{
    ft_bits<1> x[count], residual[count];
#pragma unroll
    for (int i = 0; i < count; i++)
        if (col + i * THREADS < n.x.cols) {
            ft_fetch<1>(x[i], n.x.data, n.x.dtype, at + col + i * THREADS);
            if (n.residual.data != NULL)
                ft_fetch<1>(residual[i], n.residual.data, n.residual.dtype, at + col + i * THREADS);
        }
#pragma unroll
    for (int i = 0; i < count; i++) {
        float more;
        ft_unpack<1>(&v[i], x[i], n.x.dtype);
        if (n.residual.data == NULL)
            continue;
        ft_unpack<1>(&more, residual[i], n.residual.dtype);
        v[i] = fmaf(more, n.residual_scale, v[i]);
    }
}

/* The sum of all parts, one in each thread; `eights` is shared memory for the sums of eight. */
__device__ __forceinline__ float add_threads(float sum, float eights[THREADS / FT_EIGHT])
{
#pragma unroll
    for (int apart = FT_EIGHT / 2; apart > 0; apart /= 2)
        sum += ft_exchange(sum, apart);
    if (threadIdx.x % FT_EIGHT == 0)
        eights[threadIdx.x / FT_EIGHT] = sum;
    __syncthreads();
    return ft_add_lanes(eights[threadIdx.x % FT_WARP]);
}

static __global__ void __launch_bounds__(THREADS, 4) norm_any_kernel(const ft_cuda_norm_args n)
{
    __shared__ float eights[2][THREADS / FT_EIGHT];
    extern __shared__ float kept[];
    size_t cols = n.x.cols, at = blockIdx.x * cols;
    float sum = 0.0f, squares = 0.0f, v[FT_EIGHT];
    bool keeps = cols <= MOST_KEPT;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (size_t col = threadIdx.x; col < cols; col += FT_EIGHT * THREADS) {
        load_part<FT_EIGHT>(v, n, at, col);
#pragma unroll
        for (int i = 0; i < FT_EIGHT; i++)
            if (col + i * THREADS < cols) {
                sum += v[i];
                if (keeps)
                    kept[col + i * THREADS] = v[i];
            }
    }
    float mean = ft_norm_mean(add_threads(sum, eights[0]), n.cols, n.inverse_cols);
    for (size_t col = threadIdx.x; col < cols; col += THREADS) {
        if (!keeps)
            load_part<1>(v, n, at, col);
        float distance = (keeps ? kept[col] : v[0]) - mean;
        squares = fmaf(distance, distance, squares);
    }
    float variance = ft_norm_mean(add_threads(squares, eights[1]), n.cols, n.inverse_cols);
    float factor = ft_norm_factor(variance, n.eps);
    for (size_t col = threadIdx.x; col < cols; col += THREADS) {
        if (!keeps)
            load_part<1>(v, n, at, col);
        float distance = (keeps ? kept[col] : v[0]) - mean;
        float y = fmaf(distance * factor, n.weight[col], n.bias[col]);
        if (n.out.data != NULL)
            ft_store<1>(n.out.data, n.out.dtype, at + col, &y);
        if (n.codes.data != NULL)
            ft_store_codes<1>(n.codes.data, n.codes.dtype, at + col, &y, n.inverse);
    }
}

int ft_cuda_norm_any(const ft_cuda_args *args, const ft_cuda_norm_args &n)
{
    size_t kept = n.x.cols <= MOST_KEPT ? n.x.cols * sizeof(float) : 0;
    return ft_launch(norm_any_kernel, (unsigned) n.x.rows, THREADS, kept, args->stream,
                     args->chip->overlaps, 1, n);
}
