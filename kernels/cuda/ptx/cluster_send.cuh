/*
 * cluster_send.cuh - asynchronous stores to the shared memory of other thread blocks of a cluster.
 *
 * The barriers are those of tma.cuh: the receiver counts bytes on its own mbarrier.
 * Source: PTX ISA, "st.async" and "mbarrier".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_CLUSTER_SEND_CUH
#define FT_KERNELS_CUDA_PTX_CLUSTER_SEND_CUH

#include "kernels/cuda/ptx/tma.cuh"

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* Map a shared memory address of this thread block to that of block `rank`. */
__device__ __forceinline__ uint32_t ft_cluster_smem_address(uint32_t address, int rank)
{
    uint32_t remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

/* Send four words to a peer; its mbarrier counts their bytes. */
__device__ __forceinline__ void ft_st_async_i32x4(uint32_t to, uint32_t barrier, int4 value)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void ft_st_async_f32x4(uint32_t to, uint32_t barrier, const float *value)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(barrier)
                 : "memory");
}

/* Arrive at a peer's mbarrier: the buffer has been read and may be overwritten. */
__device__ __forceinline__ void ft_mbarrier_arrive_peer(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

/* Wait until the phase with this parity completes and the data of peers is visible. */
__device__ __forceinline__ void ft_mbarrier_wait_cluster(uint64_t *barrier, unsigned parity)
{
    uint32_t done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(ft_smem_address(barrier)), "r"(parity)
                     : "memory");
    } while (!done);
}

#endif
#endif
