/*
 * named_barrier.cuh - named barriers between a subset of the warps of a thread block.
 *
 * Barriers are numbered 1 .. 15. A phase completes when `threads` threads, in whole warps, have
 * arrived or synchronized. Writes before an arrival are visible after a sync.
 * Source: PTX ISA, "bar, barrier".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_NAMED_BARRIER_CUH
#define FT_KERNELS_CUDA_PTX_NAMED_BARRIER_CUH

__device__ __forceinline__ void ft_named_barrier_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void ft_named_barrier_sync(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

#endif
