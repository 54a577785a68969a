/*
 * launch.cu - the kernels of this folder: each thread calls the body for its index.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/quantize/launch.h"

#include <cuda_runtime.h>

#define X(name, threads)                                                                           \
    static __global__ void __launch_bounds__(threads)                                              \
        name##_kernel(const ft_cuda_##name##_args args, size_t count)                              \
    {                                                                                              \
        size_t index = (size_t) blockIdx.x * threads + threadIdx.x;                                \
        if (index < count)                                                                         \
            ft_cuda_##name##_at(&args, index);                                                     \
    }                                                                                              \
    int ft_cuda_launch_##name(void *stream, const ft_cuda_##name##_args *args, size_t count)       \
    {                                                                                              \
        if (count == 0)                                                                            \
            return 0;                                                                              \
        unsigned blocks = (unsigned) ((count + threads - 1) / threads);                            \
        name##_kernel<<<blocks, threads, 0, (cudaStream_t) stream>>>(*args, count);                \
        return (int) cudaGetLastError();                                                           \
    }
#include "kernels/cuda/quantize/kernels.def"
#undef X

static __global__ void __launch_bounds__(FT_CUDA_CHOLESKY_BLOCK)
    cholesky_kernel(const ft_cuda_cholesky_args args)
{
    for (size_t col = 0; col < args.count; col++) {
        ft_cuda_cholesky_update(&args, col, threadIdx.x);
        __syncthreads();
        ft_cuda_cholesky_divide(&args, col, threadIdx.x);
        __syncthreads();
    }
    ft_cuda_cholesky_update(&args, args.count, threadIdx.x); /* the root of the last pivot */
}

int ft_cuda_launch_cholesky(void *stream, const ft_cuda_cholesky_args *args)
{
    cholesky_kernel<<<1, FT_CUDA_CHOLESKY_BLOCK, 0, (cudaStream_t) stream>>>(*args);
    return (int) cudaGetLastError();
}
