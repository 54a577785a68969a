/*
 * named_barrier.cuh - barriers at which only some of the warps of a block meet, and some do not wait.
 *
 * Barriers have numbers, 1 .. 15; each time `threads` in all, whole warps, arrive or wait.  What
 * was written before an arrival is seen after a wait.
 * Source: PTX ISA, "bar, barrier".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_NAMED_BARRIER_CUH
#define FT_KERNELS_CUDA_PTX_NAMED_BARRIER_CUH

__device__ __forceinline__ void ft_team_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void ft_team_wait(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

#endif
