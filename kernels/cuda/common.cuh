/*
 * common.cuh - what every file of the CUDA backend needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_COMMON_CUH
#define FT_KERNELS_CUDA_COMMON_CUH

#include <cuda_runtime.h>

/* Blocks of `threads` that cover `n` elements, one each. */
static inline unsigned ft_blocks(size_t n, unsigned threads)
{
    return (unsigned) ((n + threads - 1) / threads);
}

#endif
