/*
 * inputs.cu - the inputs of a run come to the device.
 *
 * A kernel reads the host's memory, because it begins sooner than a copy would: it is the first
 * node of a graph, the next one may overlap its end, and it tells the host itself, by a word in
 * pinned memory, that the inputs have been read.  A copy and an event were two more nodes, each of
 * which delayed what followed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

/* 16 bytes a thread, none of which waits for another. */
static __global__ void __launch_bounds__(THREADS) take_kernel(const ft_cuda_inputs inputs)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    uint4 bits = {};
    if (i * sizeof bits < inputs.bytes)
        bits = __ldcv((const uint4 *) inputs.from + i); /* no cache may have it */
    ft_wait_for_predecessor();                          /* which reads the inputs of its run */
    ft_let_successor_begin();
    if (i * sizeof bits < inputs.bytes)
        ((uint4 *) inputs.to)[i] = bits;
    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(&inputs.count[1], gridDim.x - 1) == gridDim.x - 1)
        *(volatile uint32_t *) inputs.taken = ++inputs.count[0];
}

/* ------------------------------------------------------------------------------------------ */

extern "C" int ft_cuda_take_inputs(const ft_cuda_chip *chip, void *stream,
                                   const ft_cuda_inputs *inputs)
{
    return ft_launch(take_kernel, ft_cover(inputs->bytes / sizeof(uint4), THREADS), THREADS, 0,
                     stream, chip->overlaps, 1, *inputs);
}
