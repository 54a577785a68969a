/*
 * read_bandwidth.cu - read-only bandwidth benchmark: the roofline of kernels that stream weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"

/* BLOCKS thread blocks per SM; ROUND loads in flight per thread. */
enum { THREADS = 256, BLOCKS = 4, ROUND = 8 };

/* Words are XORed and stored only on one magic value, so that no load is optimized away. */
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    read_kernel(const uint4 *data, size_t count, uint32_t *sink)
{
    size_t step = (size_t) gridDim.x * THREADS, at = (size_t) blockIdx.x * THREADS + threadIdx.x;
    uint32_t fold = 0;
    for (; at < count; at += ROUND * step) {
        uint4 v[ROUND];
#pragma unroll
        for (int i = 0; i < ROUND; i++)
            v[i] = at + i * step < count ? __ldcs(data + at + i * step) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < ROUND; i++)
            fold ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    }
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    if (fold == 0x5bd1e995)
        *sink = fold;
}

extern "C" int ft_cuda_read_array(const ft_cuda_chip *chip, void *stream, const void *data,
                                  size_t bytes, uint32_t *sink)
{
    return ft_launch(read_kernel, dim3((unsigned) chip->multiprocessors * BLOCKS), THREADS, 0,
                     stream, chip->overlaps, 1, (const uint4 *) data, bytes / sizeof(uint4), sink);
}
