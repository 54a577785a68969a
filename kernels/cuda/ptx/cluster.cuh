/*
 * cluster.cuh - blocks that work on one thing and reach into each other's shared memory.
 *
 * Before sm_90 there are no clusters: a block is alone in its own, and all of this is nothing but
 * __syncthreads().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_CLUSTER_CUH
#define FT_KERNELS_CUDA_PTX_CLUSTER_CUH

#include <stdint.h>

/* Which block of its cluster this is, and how many they are. */
__device__ __forceinline__ uint32_t ft_cluster_rank()
{
    uint32_t rank = 0;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

__device__ __forceinline__ uint32_t ft_cluster_blocks()
{
    uint32_t blocks = 1;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
#endif
    return blocks;
}

/* A block's variable in shared memory, as block `rank` has it. */
template <typename Any> __device__ __forceinline__ Any *ft_cluster_peer(Any *mine, uint32_t rank)
{
    Any *theirs = mine;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
#endif
    return theirs;
}

/* All threads of `blocks` blocks wait for each other and see what the others wrote. */
__device__ __forceinline__ void ft_cluster_join(uint32_t blocks)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    if (blocks > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        return;
    }
#endif
    __syncthreads();
}

#endif
