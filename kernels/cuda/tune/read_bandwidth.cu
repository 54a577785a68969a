/*
 * read_bandwidth.cu - read-only bandwidth benchmark: the roofline of kernels that stream weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"

/* BLOCKS thread blocks per SM; ROUND loads in flight per thread. */
enum { THREADS = 256, BLOCKS_PER_SM = 4, LOADS_IN_FLIGHT = 8 };

/* Words are XORed and stored only on one magic value, so that no load is optimized away. */
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    read_kernel(const uint4 *data, size_t count, uint32_t *sink)
{
    size_t stride = (size_t) gridDim.x * THREADS, at = (size_t) blockIdx.x * THREADS + threadIdx.x;
    uint32_t checksum = 0;
    for (; at < count; at += LOADS_IN_FLIGHT * stride) {
        uint4 v[LOADS_IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < LOADS_IN_FLIGHT; i++)
            v[i] =
                at + i * stride < count ? __ldcs(data + at + i * stride) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < LOADS_IN_FLIGHT; i++)
            checksum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    }
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (checksum == 0x5bd1e995)
        *sink = checksum;
}

extern "C" int ft_cuda_read_bandwidth(const ft_cuda_device_props *props, void *stream,
                                      const void *data, size_t bytes, uint32_t *sink)
{
    return ft_launch(read_kernel, dim3((unsigned) props->sm_count * BLOCKS_PER_SM), THREADS, 0,
                     stream, props->has_pdl, 1, (const uint4 *) data, bytes / sizeof(uint4), sink);
}
