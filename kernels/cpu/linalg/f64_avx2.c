/*
 * f64_avx2.c - the double-precision kernel compiled for AVX2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/linalg/f64_impl.h"

extern const ft_double_kernels ft_double_avx2;
const ft_double_kernels ft_double_avx2 = FT_DOUBLE_KERNELS;
