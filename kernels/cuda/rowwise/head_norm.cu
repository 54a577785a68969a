/*
 * head_norm.cu - RMS norm over the columns of each head.
 *
 * One warp per head and row.  A lane computes 8 consecutive partial sums (kernels/norm.h), those of
 * columns 8 * lane to 8 * lane + 7 of every 256, so that the bits equal the CPU's.  Heads of up to
 * 256 columns, the usual sizes, stay in registers; wider heads are read twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum { HEADS = 4 }; /* per thread block */

typedef struct head_norm {
    ft_view x, out;
    const float *weight; /* constant while plans run */
    size_t heads;        /* heads of all rows */
    int size;
    float eps, count, inverse_count;
} head_norm;

/* Load a vector of 8 columns, starting at `col`; columns beyond the head are 0. */
template <int VECTOR>
__device__ __forceinline__ void load_x8(float v[FT_NORM_VECTOR], const head_norm &n, size_t at,
                                        int col)
{
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i += VECTOR)
        if (col + i < n.size)
            ft_load<VECTOR>(v + i, n.x.data, n.x.dtype, at + col + i);
        else
#pragma unroll
            for (int e = 0; e < VECTOR; e++)
                v[i + e] = 0.0f;
}

template <int VECTOR>
__device__ __forceinline__ void store_x8(float v[FT_NORM_VECTOR], const head_norm &n, size_t at,
                                         int col, float factor)
{
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i += VECTOR) {
        if (col + i >= n.size)
            continue;
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            v[i + e] = (v[i + e] * factor) * n.weight[col + i + e];
        ft_store<VECTOR>(n.out.data, n.out.dtype, at + col + i, v + i);
    }
}

template <int VECTOR>
static __global__ void __launch_bounds__(FT_WARP *HEADS) head_norm_kernel(const head_norm n)
{
    size_t head = (size_t) blockIdx.x * HEADS + threadIdx.y, at = head * (size_t) n.size;
    int first = (int) threadIdx.x * FT_NORM_VECTOR;
    float v[FT_NORM_VECTOR], partial[FT_NORM_VECTOR];
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (head >= n.heads)
        return;
#pragma unroll
    for (int e = 0; e < FT_NORM_VECTOR; e++)
        partial[e] = 0.0f;
    for (int base = 0; base < n.size; base += FT_NORM_PARTIALS) {
        load_x8<VECTOR>(v, n, at, base + first);
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            partial[e] = fmaf(v[e], v[e], partial[e]);
    }
    float sum = ft_warp_sum_f32(((partial[0] + partial[4]) + (partial[2] + partial[6])) +
                                ((partial[1] + partial[5]) + (partial[3] + partial[7])));
    float factor = ft_norm_factor(ft_norm_mean(sum, n.count, n.inverse_count), n.eps);
    for (int base = 0; base < n.size; base += FT_NORM_PARTIALS) {
        if (n.size > FT_NORM_PARTIALS)
            load_x8<VECTOR>(v, n, at, base + first);
        store_x8<VECTOR>(v, n, at, base + first, factor);
    }
}

extern "C" int ft_cuda_head_norm(const ft_cuda_args *args)
{
    head_norm n = {};
    n.x = args->in[0], n.out = args->out;
    n.weight = (const float *) args->weight[0]->data;
    n.size = (int) args->in[0].cols / args->op->attr.heads;
    n.heads = args->in[0].rows * (size_t) args->op->attr.heads;
    n.eps = args->op->attr.eps;
    n.count = (float) n.size;
    n.inverse_count = 1.0f / n.count;
    if (n.heads == 0)
        return (int) cudaSuccess;
    return ft_launch(n.size % FT_NORM_VECTOR == 0 ? head_norm_kernel<FT_NORM_VECTOR>
                                                  : head_norm_kernel<1>,
                     ft_ceil_div(n.heads, HEADS), dim3(FT_WARP, HEADS), 0, args->stream,
                     args->props->has_pdl, 1, n);
}
