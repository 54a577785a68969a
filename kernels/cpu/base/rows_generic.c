/*
 * rows_generic.c - the row kernels compiled for the baseline of the target architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/base/rows_impl.h"

extern const ft_row_kernels ft_row_kernels_generic;
const ft_row_kernels ft_row_kernels_generic = FT_ROW_KERNELS;
