/*
 * norm.cuh - what both kinds of norm kernels know: their arguments, and how lanes add.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_NORM_CUH
#define FT_KERNELS_CUDA_NORM_CUH

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/norm.h"

enum { FT_WARP = 32, FT_EIGHT = 8 };

typedef struct ft_cuda_norm_args {
    ft_cuda_view x, residual, out, codes, second;
    const float *weight, *bias; /* do not change while plans run; rms norms have no bias */
    float residual_scale;       /* of codes; 1 for floats: fmaf(r, 1, x) is x + r */
    float eps;
    float inverse; /* 1 / scale of the codes */
    float cols, inverse_cols;
} ft_cuda_norm_args;

__device__ __forceinline__ float ft_exchange(float value, int lanes_apart)
{
    return __shfl_xor_sync(0xffffffff, value, lanes_apart);
}

/* The sum of what the lanes have, in all of them. */
__device__ __forceinline__ float ft_add_lanes(float sum)
{
#pragma unroll
    for (int apart = FT_WARP / 2; apart > 0; apart /= 2)
        sum += ft_exchange(sum, apart);
    return sum;
}

/* Any norm (norm_any.cu). */
int ft_cuda_norm_any(const ft_cuda_args *args, const ft_cuda_norm_args &n);

#endif
