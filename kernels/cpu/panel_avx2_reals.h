/*
 * panel_avx2_reals.h - weights in blocks by numbers of three bytes, with AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_PANEL_AVX2_REALS_H
#define FT_KERNELS_CPU_PANEL_AVX2_REALS_H

#include "kernels/cpu/panel.h"

/* As ft_panel_kernels has them, for x of FT_PANEL_PLANES bytes. */
void ft_panel_avx2_split_reals(const ft_panel_x *to, size_t row, const ft_panel_weights *w,
                               const float *x, size_t cols);
void ft_panel_avx2_multiply_reals(const ft_panel_tile *tile);

#endif
