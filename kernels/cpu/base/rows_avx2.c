/*
 * rows_avx2.c - the row kernels compiled for AVX2, FMA and F16C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows_impl.h"

extern const ft_row_kernels ft_row_kernels_avx2;
const ft_row_kernels ft_row_kernels_avx2 = FT_ROW_KERNELS;
