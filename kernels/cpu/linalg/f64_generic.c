/*
 * f64_generic.c - the double-precision kernel compiled for the baseline of the target architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/linalg/f64_impl.h"

extern const ft_double_kernels ft_double_generic;
const ft_double_kernels ft_double_generic = FT_DOUBLE_KERNELS;
