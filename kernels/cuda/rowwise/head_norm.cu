/*
 * head_norm.cu - rms norm of the columns of each head.
 *
 * A warp takes a head of a row.  A lane has 8 neighbouring parts of the sum (kernels/norm.h), so
 * that the bits are the CPU's: columns 8 * lane to 8 * lane + 7 of every 256.  Heads of up to 256
 * columns, as real ones are, stay in registers; those of wider ones are read twice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/rowwise/norm.cuh"

enum { HEADS = 4 }; /* of a block */

typedef struct head_norm {
    ft_cuda_view x, out;
    const float *weight; /* does not change while plans run */
    size_t heads;        /* of all rows */
    int size;
    float eps, count, inverse_count;
} head_norm;

/* Eight columns of a head from `col` on; what lies behind its end is 0. */
template <int wide>
__device__ __forceinline__ void load_eight(float v[FT_NORM_VECTOR], const head_norm &n, size_t at,
                                           int col)
{
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i += wide)
        if (col + i < n.size)
            ft_load<wide>(v + i, n.x.data, n.x.dtype, at + col + i);
        else
#pragma unroll
            for (int e = 0; e < wide; e++)
                v[i + e] = 0.0f;
}

template <int wide>
__device__ __forceinline__ void store_eight(float v[FT_NORM_VECTOR], const head_norm &n, size_t at,
                                            int col, float factor)
{
#pragma unroll
    for (int i = 0; i < FT_NORM_VECTOR; i += wide) {
        if (col + i >= n.size)
            continue;
#pragma unroll
        for (int e = 0; e < wide; e++)
            v[i + e] = (v[i + e] * factor) * n.weight[col + i + e];
        ft_store<wide>(n.out.data, n.out.dtype, at + col + i, v + i);
    }
}

template <int wide>
static __global__ void __launch_bounds__(FT_WARP *HEADS) head_norm_kernel(const head_norm n)
{
    size_t head = (size_t) blockIdx.x * HEADS + threadIdx.y, at = head * (size_t) n.size;
    int first = (int) threadIdx.x * FT_NORM_VECTOR;
    float v[FT_NORM_VECTOR], part[FT_NORM_VECTOR];
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (head >= n.heads)
        return;
#pragma unroll
    for (int e = 0; e < FT_NORM_VECTOR; e++)
        part[e] = 0.0f;
    for (int base = 0; base < n.size; base += FT_NORM_PARTIALS) {
        load_eight<wide>(v, n, at, base + first);
#pragma unroll
        for (int e = 0; e < FT_NORM_VECTOR; e++)
            part[e] = fmaf(v[e], v[e], part[e]);
    }
    float sum = ft_warp_sum_f32(((part[0] + part[4]) + (part[2] + part[6])) +
                                ((part[1] + part[5]) + (part[3] + part[7])));
    float factor = ft_norm_factor(ft_norm_mean(sum, n.count, n.inverse_count), n.eps);
    for (int base = 0; base < n.size; base += FT_NORM_PARTIALS) {
        if (n.size > FT_NORM_PARTIALS)
            load_eight<wide>(v, n, at, base + first);
        store_eight<wide>(v, n, at, base + first, factor);
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
