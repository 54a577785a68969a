/*
 * gemm_kernels.h - the INT8 GEMM kernels by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_GEMM_KERNELS_H
#define FT_KERNELS_CUDA_GEMM_INT8_GEMM_KERNELS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel of this name or former name, or FT_CUDA_GEMM_KERNELS. */
int ft_cuda_gemm_kernel_named(const char *name);

#ifdef __cplusplus
}
#endif
#endif
