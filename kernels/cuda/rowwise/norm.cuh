/*
 * norm.cuh - shared by the norm kernels: parameters, and sums over lanes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ROWWISE_NORM_CUH
#define FT_KERNELS_CUDA_ROWWISE_NORM_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/norm.h"

enum { FT_WARP = 32, FT_NORM_VECTOR = 8, FT_NORM_VECTORS = FT_NORM_PARTIALS / FT_NORM_VECTOR };

typedef struct ft_cuda_norm_args {
    ft_view x, residual, out, quantized, second;
    const float *weight, *bias; /* constant while plans run; RMS norms have no bias */
    const float *smoothing;     /* multiplies the columns of the quantized output; NULL: none */
    float residual_scale; /* int8 residual: its scale; floats: 1, because fmaf(r, 1, x) is x + r */
    float eps;
    float inverse; /* 1 / scale of the quantized output */
    float cols, inverse_cols;
} ft_cuda_norm_args;

__device__ __forceinline__ float ft_shuffle_xor(float value, int lanes_apart)
{
    return __shfl_xor_sync(0xffffffff, value, lanes_apart);
}

/* The sum over all lanes, returned to all of them. */
__device__ __forceinline__ float ft_warp_sum_f32(float sum)
{
#pragma unroll
    for (int distance = FT_WARP / 2; distance > 0; distance /= 2)
        sum += ft_shuffle_xor(sum, distance);
    return sum;
}

/*
 * The sum of all partial sums (kernels/norm.h), of which thread i has number i, returned to each
 * thread of a CTA. `vector_sums` is shared memory for the sums of eight threads.
 */
__device__ __forceinline__ float ft_block_sum_parts(float part, float vector_sums[FT_NORM_VECTORS])
{
#pragma unroll
    for (int distance = FT_NORM_VECTOR / 2; distance > 0; distance /= 2)
        part += ft_shuffle_xor(part, distance);
    if (threadIdx.x < FT_NORM_PARTIALS && threadIdx.x % FT_NORM_VECTOR == 0)
        vector_sums[threadIdx.x / FT_NORM_VECTOR] = part;
    __syncthreads();
    return ft_warp_sum_f32(vector_sums[threadIdx.x % FT_WARP]);
}

/* Any norm (norm_block.cu). */
int ft_cuda_norm_block(const ft_cuda_args *args, const ft_cuda_norm_args &n);

#endif
