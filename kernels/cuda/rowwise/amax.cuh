/*
 * amax.cuh - the largest magnitude (amax) of a row, from which its quantization scale follows.
 *
 * A maximum does not depend on the order, so threads may divide a row in any way. A NaN makes the
 * scale of its row NaN: as an integer its bits are larger than those of all numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ROWWISE_AMAX_CUH
#define FT_KERNELS_CUDA_ROWWISE_AMAX_CUH

#include "kernels/quant.h"

#include <stdint.h>

/* max(amax, |value|). */
__device__ __forceinline__ float ft_amax(float amax, float value)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(amax) : "f"(fabsf(value)));
    return amax;
#else
    return __uint_as_float(max(__float_as_uint(amax), __float_as_uint(fabsf(value))));
#endif
}

/* Maximum over a warp, returned to all lanes; the inputs are not negative. */
__device__ __forceinline__ float ft_warp_amax(float amax)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    return __uint_as_float(__reduce_max_sync(0xffffffff, __float_as_uint(amax)));
#else
    for (int distance = 16; distance > 0; distance /= 2)
        amax = ft_amax(amax, __shfl_xor_sync(0xffffffff, amax, distance));
    return amax;
#endif
}

/*
 * Maximum over a CTA of up to 1024 threads, returned to all of them. `warps` is shared memory for
 * one value per warp. blockDim.x is a multiple of 32.
 */
__device__ __forceinline__ float ft_block_amax(float amax, float warps[32])
{
    unsigned lane = threadIdx.x % 32;
    amax = ft_warp_amax(amax);
    if (lane == 0)
        warps[threadIdx.x / 32] = amax;
    __syncthreads();
    return ft_warp_amax(lane < blockDim.x / 32 ? warps[lane] : 0.0f);
}

#endif
