/*
 * groupwise_avx2_float.h - weights in blocks by numbers of three bytes, with AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_AVX2_FLOAT_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_AVX2_FLOAT_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"

/* As ft_panel_kernels has them, for x of FT_PANEL_PLANES bytes. */
void ft_panel_avx2_split_reals(const ft_panel_x *to, size_t row, const ft_panel_weights *w,
                               const float *x, size_t cols);
void ft_panel_avx2_multiply_reals(const ft_panel_tile *tile);

#endif
