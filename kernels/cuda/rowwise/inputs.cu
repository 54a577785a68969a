/*
 * inputs.cu - copies the inputs of a forward pass to the device.
 *
 * A kernel reads pinned host memory, because it starts earlier than a copy. It is the first node of
 * a graph, the next node may overlap with its end, and it signals the host itself through a word in
 * pinned memory that the inputs have been read. A copy and an event were two more nodes, and each
 * of them delayed what followed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/cuda.h"

enum { THREADS = 256 };

/* 16 bytes per thread, all loads independent. */
static __global__ void __launch_bounds__(THREADS) copy_inputs_kernel(const ft_cuda_inputs inputs)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
    uint4 bits = {};
    if (i * sizeof bits < inputs.bytes)
        bits = __ldcv((const uint4 *) inputs.from + i); /* not from a cache */
    ft_pdl_wait();                                      /* it still reads its own inputs */
    ft_pdl_launch_dependents();
    if (i * sizeof bits < inputs.bytes)
        ((uint4 *) inputs.to)[i] = bits;
    __syncthreads();
    if (threadIdx.x == 0 && atomicInc(&inputs.count[1], gridDim.x - 1) == gridDim.x - 1)
        *(volatile uint32_t *) inputs.consumed = ++inputs.count[0];
}

/* ---- Launch --------------------------------------------------------------------------------- */

extern "C" int ft_cuda_copy_inputs(const ft_cuda_device_props *props, void *stream,
                                   const ft_cuda_inputs *inputs)
{
    return ft_launch(copy_inputs_kernel, ft_ceil_div(inputs->bytes / sizeof(uint4), THREADS),
                     THREADS, 0, stream, props->has_pdl, 1, *inputs);
}
