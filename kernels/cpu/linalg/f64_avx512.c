/*
 * f64_avx512.c - the double-precision kernel compiled for AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/linalg/f64_impl.h"

extern const ft_double_kernels ft_double_avx512;
const ft_double_kernels ft_double_avx512 = FT_DOUBLE_KERNELS;
