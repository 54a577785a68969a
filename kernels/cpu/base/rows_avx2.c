/*
 * rows_avx2.c - the row kernels compiled for AVX2, FMA and F16C.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows_impl.h"

extern const ft_rows_isa ft_rows_avx2;
const ft_rows_isa ft_rows_avx2 = FT_ROWS_TABLE;
