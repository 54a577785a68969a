/*
 * common.cuh - kernel launches with programmatic dependent launch (PDL), and host arithmetic on
 * grids and addresses.
 *
 * On sm_90 and later a kernel may start while its predecessor still runs. Every kernel calls
 * ft_pdl_wait() before it touches memory that another kernel wrote or still reads, and
 * ft_pdl_launch_dependents() once all its thread blocks are resident, always after that wait.
 * Otherwise launches queue up several deep and compete for residency: BERT-base 1 x 128 took 345 us
 * instead of 302 on an H200, although every kernel was resident long before its inputs were ready.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_COMMON_CUH
#define FT_KERNELS_CUDA_COMMON_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* n / divisor, rounded up: e.g. the thread blocks of `divisor` threads that cover n elements. */
template <typename N, typename D> static inline auto ft_ceil_div(N n, D divisor)
{
    return (n + divisor - 1) / divisor;
}

static inline bool ft_is_aligned(const void *pointer, size_t bytes)
{
    return (uintptr_t) pointer % bytes == 0;
}

/* Wait for all earlier kernels; everything they wrote is visible afterwards. */
__device__ __forceinline__ void ft_pdl_wait()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Let thread blocks of the next kernel become resident; they still wait for this whole grid. */
__device__ __forceinline__ void ft_pdl_launch_dependents()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/*
 * Grids of at most this many thread blocks leave room for those of the next kernel. They request
 * the maximum shared memory carveout: an SM must be idle to change its carveout, so a different one
 * would keep blocks of the next kernel from starting early.
 */
enum { FT_PDL_SMALL_GRID = 256 };

/*
 * kernel<<<grid, block, shared, stream>>>(args...), with programmatic dependent launch where
 * `overlaps` (ft_cuda_device_props) is set. `cluster` thread blocks form a cluster; 1: none.
 */
template <typename... Parameters, typename... Arguments>
static inline int ft_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t smem_bytes,
                            void *stream, bool has_pdl, unsigned cluster, Arguments... arguments)
{
    cudaLaunchAttribute attributes[3] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = smem_bytes;
    config.stream = (cudaStream_t) stream;
    config.attrs = attributes;
    if (has_pdl) {
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
    if (has_pdl && (size_t) grid.x * grid.y * grid.z <= FT_PDL_SMALL_GRID) {
        attributes[config.numAttrs].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
        attributes[config.numAttrs++].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
    }
#endif
    return (int) cudaLaunchKernelEx(&config, kernel, (Parameters) arguments...);
}

#endif
