/*
 * rows_generic.c - the row functions compiled for the compiler's baseline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/base/rows_impl.h"

extern const ft_rows_isa ft_rows_generic;
const ft_rows_isa ft_rows_generic = FT_ROWS_TABLE;
