/*
 * f32_neon.c - float GEMM compiled for NEON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/f32_impl.h"

extern const ft_float_kernels ft_float_neon;
const ft_float_kernels ft_float_neon = FT_FLOAT_KERNELS;
