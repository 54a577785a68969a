/*
 * f32_avx512.c - float GEMM compiled for AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/f32_impl.h"

extern const ft_float_kernels ft_float_avx512;
const ft_float_kernels ft_float_avx512 = FT_FLOAT_KERNELS;
