/*
 * groupwise_dotprod.c - GEMM with group-wise quantized weights, with SDOT.
 *
 * SDOT multiplies signed bytes: 8-bit weights are shifted by 128.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIGNED_WEIGHTS
#include "kernels/cpu/base/simd_i32.h"

/* An asm, as in i8_sdot.h. */
FT_INLINE void vi_dot(vi *sum, vi w, int8x16_t x, size_t lane, int bits)
{
    (void) bits;
    __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(*sum) : "w"(w), "w"(x), "i"(lane));
}

#include "kernels/cpu/gemm/groupwise/groupwise_neon_tables.h"

const ft_groupwise_kernels ft_groupwise_dotprod = FT_GROUPWISE_KERNELS;
