/*
 * select.h - selects the kernels of an instruction set among those compiled for vectors of floats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SELECT_H
#define FT_KERNELS_CPU_BASE_SELECT_H

#include "kernels/cpu/base/isa.h"

#ifdef HAVE_AVX512
#define FT_SELECT_AVX512(kernels)                                                                  \
    case FT_ISA_AMX:                                                                               \
    case FT_ISA_AVX512VNNI:                                                                        \
        return &kernels##_avx512;
#else
#define FT_SELECT_AVX512(kernels)
#endif

#ifdef HAVE_AVX2
#define FT_SELECT_AVX2(kernels)                                                                    \
    case FT_ISA_AVXVNNI:                                                                           \
    case FT_ISA_AVX2:                                                                              \
        return &kernels##_avx2;
#else
#define FT_SELECT_AVX2(kernels)
#endif

#ifdef HAVE_NEON
#define FT_SELECT_NEON(kernels)                                                                    \
    case FT_ISA_I8MM:                                                                              \
    case FT_ISA_DOTPROD:                                                                           \
    case FT_ISA_NEON:                                                                              \
        return &kernels##_neon;
#else
#define FT_SELECT_NEON(kernels)
#endif

/*
 * Defines `function`, which returns the table kernels_avx512, kernels_avx2, kernels_neon or
 * kernels_generic of an instruction set.
 */
#define FT_DEFINE_SELECTION(function, type, kernels)                                               \
    extern const type kernels##_generic, kernels##_avx2, kernels##_avx512, kernels##_neon;         \
    const type *function(ft_isa isa)                                                               \
    {                                                                                              \
        switch (isa) {                                                                             \
            FT_SELECT_AVX512(kernels)                                                              \
            FT_SELECT_AVX2(kernels)                                                                \
            FT_SELECT_NEON(kernels)                                                                \
        default:                                                                                   \
            return &kernels##_generic;                                                             \
        }                                                                                          \
    }

#endif
