/*
 * pool.cu - pooling: one row per sequence.
 *
 * A thread adds a column of its sequence from the first row to the last, as the CPU does, with many
 * loads in flight. Padding sequences have no rows and get zeros.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rows.cuh"

enum { THREADS = 64, UNROLL = 32 };

typedef struct pool_args {
    ft_view x, out;
    int32_t *start; /* [sequences + 1] */
    size_t sequences;
} pool_args;

/*
 * The sum of column `col` of rows first .. end - 1. Loads after the end read the last row again, so
 * that no load depends on a branch.
 */
template <ft_dtype dtype>
__device__ __forceinline__ float sum_column(const ft_view &x, size_t col, int first, int end)
{
    size_t cols = (uint32_t) x.cols;
    float sum = 0.0f;
    for (int row = first; row < end; row += UNROLL) {
        ft_raw_vec<1> bits[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            ft_load_raw_as<dtype, 1>(bits[i], x.data, (size_t) min(row + i, end - 1) * cols + col);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
            float v;
            ft_unpack_as<dtype, 1>(&v, bits[i]);
            sum += row + i < end ? v : 0.0f;
        }
    }
    return sum;
}

__device__ __forceinline__ float column_mean(const ft_view &x, size_t col, int first, int end)
{
    float sum = x.dtype == FT_F16    ? sum_column<FT_F16>(x, col, first, end)
                : x.dtype == FT_BF16 ? sum_column<FT_BF16>(x, col, first, end)
                                     : sum_column<FT_F32>(x, col, first, end);
    return sum * (1.0f / (float) (end - first));
}

/* blockIdx.x is the sequence. */
template <ft_pooling pooling>
static __global__ void __launch_bounds__(THREADS) pool_kernel(pool_args p)
{
    size_t col = (size_t) blockIdx.y * THREADS + threadIdx.x, sequence = blockIdx.x;
    float value = 0.0f;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= p.x.cols)
        return;
    bool inside = sequence < p.sequences;
    int first = inside ? p.start[sequence] : 0, end = inside ? p.start[sequence + 1] : 0;
    if (first < end && pooling == FT_POOL_MEAN)
        value = column_mean(p.x, col, first, end);
    else if (first < end)
        ft_load<1>(&value, p.x.data, p.x.dtype, (size_t) first * p.x.cols + col);
    ft_store<1>(p.out.data, p.out.dtype, sequence * p.x.cols + col, &value);
}

/* ---- Operation ----------------------------------------------------------------------------- */

extern "C" int ft_cuda_pool(const ft_cuda_args *args)
{
    pool_args p = {};
    p.x = args->in[0], p.out = args->out;
    p.start = (int32_t *) args->batch->start;
    p.sequences = args->batch->sequences;
    if (p.out.rows == 0)
        return (int) cudaSuccess;
    dim3 grid((unsigned) p.out.rows, ft_ceil_div(p.x.cols, THREADS));
    return ft_launch(args->op->attr.pooling == FT_POOL_MEAN ? pool_kernel<FT_POOL_MEAN>
                                                            : pool_kernel<FT_POOL_FIRST>,
                     grid, THREADS, 0, args->stream, args->props->has_pdl, 1, p);
}
