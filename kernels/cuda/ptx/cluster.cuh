/*
 * cluster.cuh - thread block clusters and distributed shared memory.
 *
 * Before sm_90 there are no clusters: a thread block is its own cluster, and synchronization falls
 * back to __syncthreads().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_CLUSTER_CUH
#define FT_KERNELS_CUDA_PTX_CLUSTER_CUH

#include <stdint.h>

/* Rank of this thread block in its cluster, and the cluster size. */
__device__ __forceinline__ uint32_t ft_cluster_rank()
{
    uint32_t rank = 0;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

__device__ __forceinline__ uint32_t ft_cluster_size()
{
    uint32_t blocks = 1;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
#endif
    return blocks;
}

/* Address of a shared memory variable in the thread block with this rank. */
template <typename T> __device__ __forceinline__ T *ft_cluster_map_peer(T *local, uint32_t rank)
{
    T *remote = local;
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(local), "r"(rank));
#endif
    return remote;
}

/*
 * Barrier over all threads of a cluster of `blocks` thread blocks, with release/acquire semantics.
 */
__device__ __forceinline__ void ft_cluster_sync(uint32_t blocks)
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
