/*
 * isa.h - the instruction sets that the CPU kernels are built for, and which one to use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_ISA_H
#define FT_KERNELS_CPU_BASE_ISA_H

#include "runtime/ft.h"

/* From the slowest to the fastest; generic is plain C and is there on every machine. */
typedef enum ft_isa { FT_ISA_GENERIC, FT_ISA_AVX2, FT_ISA_AVXVNNI, FT_ISA_AVX512VNNI } ft_isa;

enum { FT_ISA_COUNT = FT_ISA_AVX512VNNI + 1 };

/* "generic", "avx2", "avxvnni", "avx512vnni". */
const char *ft_isa_name(ft_isa isa);

/*
 * Whether this build has the kernels and this machine runs them.  Asks the processor, which takes
 * microseconds on a virtual machine: for the start, not for every product.
 */
bool ft_isa_usable(ft_isa isa);

/*
 * The fastest usable instruction set, or the one that the environment variable FT_CPU names.
 * Errors: FT_EARG for a name that is none, FT_EUNSUPPORTED for one that is not usable here.
 */
FT_MUST_USE ft_status ft_cpu_isa(ft_isa *out, ft_error *err);

#endif
