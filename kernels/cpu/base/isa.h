/*
 * isa.h - the instruction sets that the CPU kernels are compiled for, and which one to use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_ISA_H
#define FT_KERNELS_CPU_BASE_ISA_H

#include "runtime/ft.h"

/*
 * Those of each architecture from the slowest to the fastest; generic is plain C and always
 * supported.
 */
typedef enum ft_isa {
    FT_ISA_GENERIC,
    /* x86-64 */
    FT_ISA_AVX2,
    FT_ISA_AVXVNNI,
    FT_ISA_AVX512VNNI,
    FT_ISA_AMX, /* AVX-512 VNNI, and AMX for int8 GEMMs of many rows */
    /* AArch64 */
    FT_ISA_NEON,
    FT_ISA_DOTPROD, /* NEON with SDOT */
    FT_ISA_I8MM,    /* NEON with SDOT, USDOT and SMMLA */
} ft_isa;

enum { FT_ISA_COUNT = FT_ISA_I8MM + 1 };

/* "generic", "avx2", "avxvnni", "avx512vnni", "amx", "neon", "dotprod", "i8mm". */
const char *ft_isa_name(ft_isa isa);

/*
 * Whether this build contains the kernels and the processor supports them. On x86-64 it executes
 * CPUID, which takes microseconds on a virtual machine: call it at start-up, not for every GEMM. For
 * AMX it asks Linux to permit this process the use of tile registers, which is then permitted for
 * good.
 */
bool ft_isa_supported(ft_isa isa);

/*
 * The fastest supported instruction set, or the one named by the environment variable FT_CPU.
 * Errors: FT_EARG for an unknown name, FT_EUNSUPPORTED if this machine or build does not support
 * it.
 */
FT_MUST_USE ft_status ft_cpu_isa(ft_isa *out, ft_error *err);

#endif
