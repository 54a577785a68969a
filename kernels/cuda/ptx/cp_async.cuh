/*
 * cp_async.cuh - cp.async: asynchronous copies from global to shared memory.
 *
 * Copies form groups, closed by ft_cp_async_commit(); a thread waits for its own groups, oldest
 * first. A copy with `inside` false does not read and fills its destination with zeros. Before
 * sm_80 a copy is a load and a store that complete before the call returns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_CP_ASYNC_CUH
#define FT_KERNELS_CUDA_PTX_CP_ASYNC_CUH

#include <stdint.h>

/* 16 bytes, both addresses aligned; bypasses L1 because a thread block reads each address once. */
__device__ __forceinline__ void ft_cp_async_16(void *shared, const void *global, bool inside)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    *(uint4 *) shared = inside ? *(const uint4 *) global : make_uint4(0, 0, 0, 0);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t) __cvta_generic_to_shared(shared)),
                 "l"(global), "r"(inside ? 16 : 0)
                 : "memory");
#endif
}

/* 8 bytes, both addresses aligned. */
__device__ __forceinline__ void ft_cp_async_8(void *shared, const void *global, bool inside)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    *(uint2 *) shared = inside ? *(const uint2 *) global : make_uint2(0, 0);
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                     (uint32_t) __cvta_generic_to_shared(shared)),
                 "l"(global), "r"(inside ? 8 : 0)
                 : "memory");
#endif
}

/* 4 bytes, both addresses aligned. */
__device__ __forceinline__ void ft_cp_async_4(void *shared, const void *global, bool inside)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    *(uint32_t *) shared = inside ? *(const uint32_t *) global : 0;
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (uint32_t) __cvta_generic_to_shared(shared)),
                 "l"(global), "r"(inside ? 4 : 0)
                 : "memory");
#endif
}

__device__ __forceinline__ void ft_cp_async_commit()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait until at most the `count` most recent groups of this thread are pending. */
template <int count> __device__ __forceinline__ void ft_cp_async_wait()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory");
#endif
}

#endif
