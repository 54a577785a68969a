/*
 * f32.c - selects the float GEMM kernels of an instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/f32.h"

#include "kernels/cpu/base/select.h"

FT_DEFINE_SELECTION(ft_float_kernels_for, ft_float_kernels, ft_float)
