/*
 * gemm_f16.h - batch-invariant products of f16 or bf16 by mma.sync.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H
#define FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H

#include "kernels/cuda/cuda.h"

/*
 * ft_cuda_float_steady() where the tensor cores multiply and the chip is not one for
 * wgmma_f16_gemm.h: gemv_f16.cu for up to FT_CUDA_HALVES_FEW rows, mma_f16.cu for any
 * number.
 */
enum { FT_CUDA_HALVES_FEW = 16 };
bool ft_cuda_halves_takes(const ft_cuda_chip *chip, const ft_cuda_float_product *p);
int ft_cuda_halves_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);
int ft_cuda_halves(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);

/* One product of few rows, of any dtypes, without the library and without scratch. */
int ft_cuda_float_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p);

#endif
