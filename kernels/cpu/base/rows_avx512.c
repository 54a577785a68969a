/*
 * rows_avx512.c - the row kernels compiled for AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows_impl.h"

extern const ft_rows_isa ft_rows_avx512;
const ft_rows_isa ft_rows_avx512 = FT_ROWS_TABLE;
