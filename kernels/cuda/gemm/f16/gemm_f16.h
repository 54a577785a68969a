/*
 * gemm_f16.h - batch-invariant f16 and bf16 GEMM with mma.sync.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H
#define FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H

#include "kernels/cuda/cuda.h"

/*
 * Kernels of ft_cuda_float_steady() on tensor cores where wgmma_f16_gemm.h does not support the
 * device: gemv_f16.cu for up to FT_CUDA_HALVES_FEW rows, mma_f16.cu for any number.
 */
enum { FT_CUDA_HALVES_FEW = 16 };
bool ft_cuda_halves_takes(const ft_cuda_chip *chip, const ft_cuda_float_product *p);
int ft_cuda_halves_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);
int ft_cuda_halves(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);

/* Float GEMV for few rows, any dtypes, without cuBLAS and without scratch. */
int ft_cuda_float_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);

#endif
