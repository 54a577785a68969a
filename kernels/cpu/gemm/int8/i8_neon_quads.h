/*
 * i8_neon_quads.h - panels of quads as they lie in COL4_4R2_8C, for the NEON kernels that multiply
 * a quad at a time.
 *
 * The including file defines what i8_neon.h lists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_NEON_QUADS_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_NEON_QUADS_H

#include "kernels/cpu/gemm/int8/i8_neon.h"

FT_INLINE void store_quads(char *strip, size_t quad_bytes, size_t q, const strip_quad *quads,
                           size_t count)
{
    int8_t *to = (int8_t *) strip + q * quad_bytes;
    for (size_t i = 0; i < count; i++, to += quad_bytes) {
        vst1q_s8(to, quads[i].even);
        vst1q_s8(to + 16, quads[i].odd);
    }
}

#endif
