/*
 * warp.cuh - warp-uniform values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_WARP_CUH
#define FT_KERNELS_CUDA_PTX_WARP_CUH

/*
 * Index of this warp in its thread block, as a value that the compiler knows to be warp-uniform.
 * threadIdx.x / 32 occupies a register of every lane, and a shuffle in a branch that depends on it
 * is compiled twice, once for partially active warps.
 */
__device__ __forceinline__ int ft_warp_id()
{
    return __shfl_sync(0xffffffff, (int) threadIdx.x / 32, 0);
}

#endif
