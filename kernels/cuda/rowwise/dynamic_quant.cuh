/*
 * dynamic_quant.cuh - variants of elementwise operations that read or write per-row scales.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ROWWISE_DYNAMIC_QUANT_CUH
#define FT_KERNELS_CUDA_ROWWISE_DYNAMIC_QUANT_CUH

#include "kernels/cuda/cuda.h"

int ft_cuda_quantize_rows(const ft_cuda_args *args);
int ft_cuda_dequantize_rows(const ft_cuda_args *args);
int ft_cuda_gate_rows(const ft_cuda_args *args);

#endif
