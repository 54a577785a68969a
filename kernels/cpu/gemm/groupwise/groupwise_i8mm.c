/*
 * groupwise_i8mm.c - GEMM with group-wise quantized weights, with USDOT.
 *
 * USDOT multiplies unsigned by signed bytes, exactly the types of weights and activations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/simd_i32.h"

/* An asm, as in i8_sdot.h. */
FT_INLINE void vi_dot(vi *sum, vi w, int8x16_t x, size_t lane, int bits)
{
    (void) bits;
    __asm__ volatile("usdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(*sum) : "w"(w), "w"(x), "i"(lane));
}

#include "kernels/cpu/gemm/groupwise/groupwise_neon_tables.h"

const ft_groupwise_kernels ft_groupwise_i8mm = FT_GROUPWISE_KERNELS;
