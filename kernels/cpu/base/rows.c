/*
 * rows.c - selects the row kernels of an instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows.h"

#include "kernels/cpu/base/select.h"

FT_DEFINE_SELECTION(ft_row_kernels_for, ft_row_kernels, ft_row_kernels)
