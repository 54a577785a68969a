/*
 * f64_neon.c - the double-precision kernel compiled for NEON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/linalg/f64_impl.h"

extern const ft_double_kernels ft_double_neon;
const ft_double_kernels ft_double_neon = FT_DOUBLE_KERNELS;
