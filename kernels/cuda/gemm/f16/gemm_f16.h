/*
 * gemm_f16.h - batch-invariant f16 and bf16 GEMM with mma.sync.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H
#define FT_KERNELS_CUDA_GEMM_F16_GEMM_F16_H

#include "kernels/cuda/cuda.h"

/*
 * Kernels of ft_cuda_float_gemm_batch_invariant() on tensor cores where wgmma_f16_gemm.h does not
 * support the device: gemv_f16.cu for up to FT_CUDA_F16_GEMV_MAX_M rows, mma_f16.cu for any number.
 */
enum { FT_CUDA_F16_GEMV_MAX_M = 16 };
bool ft_cuda_f16_mma_supports(const ft_cuda_device_props *props, const ft_cuda_float_gemm_args *p);
int ft_cuda_f16_gemv(const ft_cuda_device_props *props, void *stream,
                     const ft_cuda_float_gemm_args *p);

/* Tokens of a tile of mma_f16.cu. */
typedef enum ft_cuda_f16_mma_tile {
    FT_CUDA_F16_MMA_M64,
    FT_CUDA_F16_MMA_M128,
    FT_CUDA_F16_MMA_TILES
} ft_cuda_f16_mma_tile;
ft_cuda_f16_mma_tile ft_cuda_f16_mma_select(const ft_cuda_device_props *props,
                                            const ft_cuda_float_gemm_args *p);
int ft_cuda_f16_mma(ft_cuda_f16_mma_tile tile, const ft_cuda_device_props *props, void *stream,
                    const ft_cuda_float_gemm_args *p);

/* Float GEMV for few rows, any dtypes, without cuBLAS and without scratch. */
int ft_cuda_float_gemv(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_float_gemm_args *p);

#endif
