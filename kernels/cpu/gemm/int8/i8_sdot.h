/*
 * i8_sdot.h - what the instruction sets with SDOT share: 16 bytes of COL4_4R2_8C are four rows x 4
 * k, which SDOT multiplies by one quad of x, a lane of a vector.
 *
 * The including file defines what i8_neon.h lists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_SDOT_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_SDOT_H

#include "kernels/cpu/gemm/int8/i8_neon.h"

/*
 * sum += the quads of weights times quad `lane` of x, a constant after inlining. With the
 * intrinsic, the compiler loads so many operands in advance that it spills accumulators.
 */
FT_INLINE void dot_lane(int32x4_t *sum, int8x16_t weights, int8x16_t x, size_t lane)
{
    __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[%3]"
                     : "+w"(*sum)
                     : "w"(weights), "w"(x), "i"(lane));
}

/*
 * The weights of a tile stay in registers while all rows of x are processed; two sums per vector
 * shorten the chains of dependent instructions.
 */
static void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                        int32_t *out)
{
    int8x16_t even[BLOCK_QUADS], odd[BLOCK_QUADS];
    FT_UNROLL
    for (size_t q = 0; q < BLOCK_QUADS; q++) {
        even[q] = vld1q_s8(weights + q * 16);
        odd[q] = vld1q_s8(weights + q * 16 + 128);
    }
    for (size_t row = 0; row < tile->rows; row++, x += tile->x_stride, out += tile->out_stride) {
        int8x16_t x_low = vld1q_s8(x), x_high = vld1q_s8(x + 16);
        int32x4_t even_sum[2] = { vld1q_s32(out), vdupq_n_s32(0) };
        int32x4_t odd_sum[2] = { vld1q_s32(out + 4), vdupq_n_s32(0) };
        FT_UNROLL
        for (size_t q = 0; q < BLOCK_QUADS; q++) {
            int8x16_t x4 = q < 4 ? x_low : x_high;
            dot_lane(&even_sum[q % 2], even[q], x4, q % 4);
            dot_lane(&odd_sum[q % 2], odd[q], x4, q % 4);
        }
        vst1q_s32(out, vaddq_s32(even_sum[0], even_sum[1]));
        vst1q_s32(out + 4, vaddq_s32(odd_sum[0], odd_sum[1]));
    }
}

#endif
