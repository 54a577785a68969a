/*
 * rows_generic.c - the row kernels compiled for the baseline of the target architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/base/rows_impl.h"

extern const ft_rows_isa ft_rows_generic;
const ft_rows_isa ft_rows_generic = FT_ROWS_TABLE;
