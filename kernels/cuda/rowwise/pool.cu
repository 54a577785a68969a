/*
 * pool.cu - pooling: one row per sequence.
 *
 * A thread reduces a column of its sequence from the first row to the last, as the CPU does, with
 * many loads in flight. Padding sequences have no rows and get zeros.
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

/* The value of a reduction after row `index` of its sequence, v in this column. */
template <ft_pooling pooling>
__device__ __forceinline__ float reduce(float value, float v, int index)
{
    if (pooling == FT_POOL_MAX)
        return index == 0 || v > value || isnan(v) ? v : value;
    if (pooling == FT_POOL_WEIGHTED_MEAN)
        return value + v * (float) (index + 1);
    return value + v;
}

/*
 * Column `col` of rows first .. end - 1, reduced. Loads after the end read the last row again, so
 * that no load depends on a branch.
 */
template <ft_pooling pooling, ft_dtype dtype>
__device__ __forceinline__ float reduce_column(const ft_view &x, size_t col, int first, int end)
{
    size_t cols = (uint32_t) x.cols;
    float value = 0.0f;
    for (int row = first; row < end; row += UNROLL) {
        ft_raw_vec<1> bits[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; i++)
            ft_load_raw_as<dtype, 1>(bits[i], x.data, (size_t) min(row + i, end - 1) * cols + col);
#pragma unroll
        for (int i = 0; i < UNROLL; i++) {
            float v;
            ft_unpack_as<dtype, 1>(&v, bits[i]);
            if (row + i < end)
                value = reduce<pooling>(value, v, row + i - first);
        }
    }
    return value;
}

/* What a sum over n rows is multiplied by. */
template <ft_pooling pooling> __device__ __forceinline__ float factor_of(int n)
{
    return pooling == FT_POOL_MEAN            ? 1.0f / (float) n
           : pooling == FT_POOL_MEAN_SQRT_LEN ? 1.0f / sqrtf((float) n)
                                              : 1.0f / (0.5f * (float) n * (float) (n + 1));
}

template <ft_pooling pooling>
__device__ __forceinline__ float pool_column(const ft_view &x, size_t col, int first, int end)
{
    float value;
    if (pooling == FT_POOL_FIRST || pooling == FT_POOL_LAST) {
        int row = pooling == FT_POOL_FIRST ? first : end - 1;
        ft_load<1>(&value, x.data, x.dtype, (size_t) row * x.cols + col);
        return value;
    }
    value = x.dtype == FT_F16    ? reduce_column<pooling, FT_F16>(x, col, first, end)
            : x.dtype == FT_BF16 ? reduce_column<pooling, FT_BF16>(x, col, first, end)
                                 : reduce_column<pooling, FT_F32>(x, col, first, end);
    return pooling == FT_POOL_MAX ? value : value * factor_of<pooling>(end - first);
}

/* blockIdx.x is the sequence. */
template <ft_pooling pooling>
static __global__ void __launch_bounds__(THREADS) pool_kernel(pool_args p)
{
    size_t col = (size_t) blockIdx.y * THREADS + threadIdx.x, sequence = blockIdx.x;
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (col >= p.x.cols)
        return;
    bool inside = sequence < p.sequences;
    int first = inside ? p.start[sequence] : 0, end = inside ? p.start[sequence + 1] : 0;
    float value = first < end ? pool_column<pooling>(p.x, col, first, end) : 0.0f;
    ft_store<1>(p.out.data, p.out.dtype, sequence * p.x.cols + col, &value);
}

/* ---- Operation ----------------------------------------------------------------------------- */

typedef void (*pool_kernel_fn)(pool_args);

static const pool_kernel_fn kernels[FT_NUM_POOLINGS] = {
    pool_kernel<FT_POOL_FIRST>,         pool_kernel<FT_POOL_MEAN>,
    pool_kernel<FT_POOL_LAST>,          pool_kernel<FT_POOL_MAX>,
    pool_kernel<FT_POOL_MEAN_SQRT_LEN>, pool_kernel<FT_POOL_WEIGHTED_MEAN>,
};

extern "C" int ft_cuda_pool(const ft_cuda_args *args)
{
    pool_args p = {};
    p.x = args->in[0], p.out = args->out;
    p.start = (int32_t *) args->batch->start;
    p.sequences = args->batch->sequences;
    if (p.out.rows == 0)
        return (int) cudaSuccess;
    dim3 grid((unsigned) p.out.rows, ft_ceil_div(p.x.cols, THREADS));
    return ft_launch(kernels[args->op->attr.pooling], grid, THREADS, 0, args->stream,
                     args->props->has_pdl, 1, p);
}
