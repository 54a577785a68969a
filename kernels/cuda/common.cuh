/*
 * common.cuh - what every file of the CUDA backend needs: launching, and waiting for the launch
 * before.
 *
 * On sm_90 and later a kernel may begin while its predecessor still runs (programmatic dependent
 * launch).  So every kernel calls ft_wait_for_predecessor() before it touches what another kernel
 * wrote or still reads, and ft_let_successor_begin() when its blocks have all been placed: after
 * that wait, for else kernels pile up several deep and take each other's room.  (BERT-base 1 x 128
 * took 345 us instead of 302 on an H200, although every kernel was there long before its turn.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_COMMON_CUH
#define FT_KERNELS_CUDA_COMMON_CUH

#include <cuda_runtime.h>

/* Blocks of `threads` that cover `n` elements, one each. */
static inline unsigned ft_cover(size_t n, unsigned threads)
{
    return (unsigned) ((n + threads - 1) / threads);
}

/* Everything that earlier kernels wrote is visible after this. */
__device__ __forceinline__ void ft_wait_for_predecessor()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The next kernel's blocks may be placed; they still wait for this whole grid. */
__device__ __forceinline__ void ft_let_successor_begin()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/*
 * Blocks of a grid after which others have room.  Such kernels leave all of the first-level cache
 * that they may to shared memory: a multiprocessor must be empty to divide it anew, and so could
 * not take blocks of the next kernel early.
 */
enum { FT_SMALL_GRID = 256 };

/*
 * kernel<<<grid, block, shared, stream>>>(args...), allowed to overlap its predecessor's end where
 * `overlaps` (ft_cuda_chip) says that the device can.  `cluster` blocks share a cluster; 1: none.
 */
template <typename... Parameters, typename... Arguments>
static inline int ft_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                            void *stream, bool overlaps, unsigned cluster, Arguments... arguments)
{
    cudaLaunchAttribute attributes[3] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = (cudaStream_t) stream;
    config.attrs = attributes;
    if (overlaps) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = cluster;
        attributes[config.numAttrs].val.clusterDim.y = 1;
        attributes[config.numAttrs++].val.clusterDim.z = 1;
    }
#if CUDART_VERSION >= 13000
    if (overlaps && (size_t) grid.x * grid.y * grid.z <= FT_SMALL_GRID) {
        attributes[config.numAttrs].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
        attributes[config.numAttrs++].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
    }
#endif
    return (int) cudaLaunchKernelEx(&config, kernel, (Parameters) arguments...);
}

#endif
