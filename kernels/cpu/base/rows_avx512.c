/*
 * rows_avx512.c - the row kernels compiled for AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows_impl.h"

extern const ft_row_kernels ft_row_kernels_avx512;
const ft_row_kernels ft_row_kernels_avx512 = FT_ROW_KERNELS;
