/*
 * random_operand.h - random values for benchmarks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_TUNE_RANDOM_OPERAND_H
#define FT_KERNELS_CUDA_TUNE_RANDOM_OPERAND_H

#include "runtime/ft.h"

/* A uniform hash of i. */
uint64_t ft_mix64(uint64_t i);

/*
 * Fills device memory: FT_I8 with -127 .. 127, FT_U4 and FT_U8 with any bits, float types with
 * magnitudes of 0.5 to 1 of either sign.  The values repeat every 8 MiB.  Returns a cudaError_t.
 */
int ft_cuda_fill_random(void *to, size_t bytes, ft_dtype dtype);

#endif
