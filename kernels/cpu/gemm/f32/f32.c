/*
 * f32.c - selects the float GEMM kernels of an instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/gemm/f32/f32.h"

extern const ft_float_kernels ft_float_generic, ft_float_avx2, ft_float_avx512, ft_float_neon;

const ft_float_kernels *ft_float_kernels_for(ft_isa isa)
{
    switch (isa) {
#ifdef HAVE_AVX512
    case FT_ISA_AMX:
    case FT_ISA_AVX512VNNI:
        return &ft_float_avx512;
#endif
#ifdef HAVE_AVX2
    case FT_ISA_AVXVNNI:
    case FT_ISA_AVX2:
        return &ft_float_avx2;
#endif
#ifdef HAVE_NEON
    case FT_ISA_I8MM:
    case FT_ISA_DOTPROD:
    case FT_ISA_NEON:
        return &ft_float_neon;
#endif
    default:
        return &ft_float_generic;
    }
}
