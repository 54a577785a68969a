/*
 * warp.cuh - what all lanes of a warp know alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_WARP_CUH
#define FT_KERNELS_CUDA_PTX_WARP_CUH

/*
 * Which warp of its block this is, in a way that tells the compiler that no lane differs: what
 * follows from threadIdx.x / 32 lies in registers of each lane, and each exchange between lanes in
 * a branch that depends on it is there twice, for warps of which only some lanes came.
 */
__device__ __forceinline__ int ft_warp_of_block()
{
    return __shfl_sync(0xffffffff, (int) threadIdx.x / 32, 0);
}

#endif
