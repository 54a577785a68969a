/*
 * groupwise_neon.c - GEMM with group-wise quantized weights, with the multiplications of every
 * AArch64 processor.
 *
 * 8-bit weights less 128 are signed, as SMULL needs them. Two products of them and digits may be
 * 2^15, so these are added in 32 bits; those of 4-bit weights are added in 16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIGNED_WEIGHTS
#include "kernels/cpu/base/simd_i32.h"

FT_INLINE int8x16_t broadcast_lane(int8x16_t x, size_t lane)
{
    int32x4_t x4 = vreinterpretq_s32_s8(x);
    return vreinterpretq_s8_s32(lane == 0   ? vdupq_laneq_s32(x4, 0)
                                : lane == 1 ? vdupq_laneq_s32(x4, 1)
                                : lane == 2 ? vdupq_laneq_s32(x4, 2)
                                            : vdupq_laneq_s32(x4, 3));
}

/* An asm, as in i8_neon.c. */
FT_INLINE void vi_dot(vi *sum, vi w, int8x16_t x, size_t lane, int bits)
{
    int8x16_t weights = vreinterpretq_s8_s32(w), quad = broadcast_lane(x, lane);
    int16x8_t low = vmull_s8(vget_low_s8(weights), vget_low_s8(quad));
    int16x8_t high = vmull_high_s8(weights, quad);
    if (bits == 4)
        __asm__ volatile("sadalp %0.4s, %1.8h" : "+w"(*sum) : "w"(vpaddq_s16(low, high)));
    else
        __asm__ volatile("add %0.4s, %0.4s, %1.4s"
                         : "+w"(*sum)
                         : "w"(vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high))));
}

#include "kernels/cpu/gemm/groupwise/groupwise_neon_tables.h"

const ft_groupwise_kernels ft_groupwise_neon = FT_GROUPWISE_KERNELS;
