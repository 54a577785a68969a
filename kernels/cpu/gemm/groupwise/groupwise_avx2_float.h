/*
 * groupwise_avx2_float.h - GEMM with group-wise quantized weights and float activations, with AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_AVX2_FLOAT_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_AVX2_FLOAT_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"

/* The functions of ft_groupwise_kernels for x of FT_PANEL_DIGITS digits. */
void ft_groupwise_avx2_quantize_float(const ft_groupwise_x *to, size_t row,
                                      const ft_groupwise_weights *w, const float *x, size_t cols);
void ft_groupwise_avx2_gemm_float(const ft_groupwise_tile *tile);

#endif
