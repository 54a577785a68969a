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

enum { FT_WARP = 32, FT_EIGHT = 8, FT_NORM_EIGHTS = FT_NORM_PARTS / FT_EIGHT };

typedef struct ft_cuda_norm_args {
    ft_cuda_view x, residual, out, codes, second;
    const float *weight, *bias; /* constant while plans run; RMS norms have no bias */
    float residual_scale; /* int8 residual: its scale; floats: 1, because fmaf(r, 1, x) is x + r */
    float eps;
    float inverse; /* 1 / scale of the quantized output */
    float cols, inverse_cols;
} ft_cuda_norm_args;

__device__ __forceinline__ float ft_exchange(float value, int lanes_apart)
{
    return __shfl_xor_sync(0xffffffff, value, lanes_apart);
}

/* The sum over all lanes, returned to all of them. */
__device__ __forceinline__ float ft_add_lanes(float sum)
{
#pragma unroll
    for (int apart = FT_WARP / 2; apart > 0; apart /= 2)
        sum += ft_exchange(sum, apart);
    return sum;
}

/*
 * The sum of all partial sums (kernels/norm.h), of which thread i has number i, returned to each
 * thread of a CTA. `vector_sums` is shared memory for the sums of eight threads.
 */
__device__ __forceinline__ float ft_add_parts(float part, float eights[FT_NORM_EIGHTS])
{
#pragma unroll
    for (int apart = FT_EIGHT / 2; apart > 0; apart /= 2)
        part += ft_exchange(part, apart);
    if (threadIdx.x < FT_NORM_PARTS && threadIdx.x % FT_EIGHT == 0)
        eights[threadIdx.x / FT_EIGHT] = part;
    __syncthreads();
    return ft_add_lanes(eights[threadIdx.x % FT_WARP]);
}

/* Any norm (norm_block.cu). */
int ft_cuda_norm_any(const ft_cuda_args *args, const ft_cuda_norm_args &n);

#endif
