/*
 * f32_generic.c - float GEMM compiled for the baseline of the target architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/gemm/f32/f32_impl.h"

extern const ft_float_kernels ft_float_generic;
const ft_float_kernels ft_float_generic = FT_FLOAT_KERNELS;
