/*
 * rows_neon.c - the row kernels compiled for NEON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows_impl.h"

extern const ft_row_kernels ft_row_kernels_neon;
const ft_row_kernels ft_row_kernels_neon = FT_ROW_KERNELS;
