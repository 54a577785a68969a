/*
 * i8_neon.h - the 128-bit vectors of i8_strips.h: a quad of a strip is a pair of vectors, one of
 * the even rows and one of the odd ones.
 *
 * Weights and x are both signed, so accumulators start at zero and `acc_init` is not used.
 *
 * The including file defines ACC_VECTORS, the vectors of strip_acc, and what i8_strips.h lists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_NEON_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_NEON_H

#include "kernels/cpu/base/simd.h"

enum { QUAD_BYTES = 32 };

typedef struct strip_quad {
    int8x16_t even, odd; /* four rows x 4 k each */
} strip_quad;

typedef struct strip_acc {
    int32x4_t v[ACC_VECTORS];
} strip_acc;

#include "kernels/cpu/gemm/int8/i8_strips.h"

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    (void) x, (void) stride, (void) quads;
    memset(acc_init, 0, rows * sizeof *acc_init);
}

FT_INLINE void init_acc(tile_acc sum, const int32_t *acc_init, int rows)
{
    (void) acc_init;
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        FT_UNROLL
        for (int strip = 0; strip < TILE_STRIPS; strip++) {
            FT_UNROLL
            for (int v = 0; v < ACC_VECTORS; v++)
                sum[row][strip].v[v] = vdupq_n_s32(0);
        }
    }
}

/* Stores accumulators of the rows 0 2 4 6 and 1 3 5 7 in the order of the rows. */
FT_INLINE void store_interleaved(int32_t *to, int32x4_t even, int32x4_t odd)
{
    vst1q_s32(to, vzip1q_s32(even, odd));
    vst1q_s32(to + 4, vzip2q_s32(even, odd));
}

FT_INLINE void unpermute_stored(int32_t *acc)
{
    store_interleaved(acc, vld1q_s32(acc), vld1q_s32(acc + 4));
}

FT_INLINE void load_two_quads(strip_quad quads[2], const int8_t *tile)
{
    FT_UNROLL
    for (size_t q = 0; q < 2; q++) {
        quads[q].even = vld1q_s8(tile + q * 16);
        quads[q].odd = vld1q_s8(tile + q * 16 + 128);
    }
}

/* Transposes a 4 x 4 square of quads; row i is at from + i * stride. */
FT_INLINE void transpose_quads(int8x16_t quads[4], const int8_t *from, size_t stride)
{
    vf row[4];
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        row[i] = vreinterpretq_f32_s8(vld1q_s8(from + i * stride));
    vf_transpose(row);
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        quads[i] = vreinterpretq_s8_f32(row[i]);
}

FT_INLINE void transpose_rows(strip_quad quads[4], const int8_t *from, size_t stride)
{
    int8x16_t even[4], odd[4];
    transpose_quads(even, from, 2 * stride);
    transpose_quads(odd, from + stride, 2 * stride);
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        quads[i] = (strip_quad){ even[i], odd[i] };
}

FT_INLINE strip_quad transpose_cols(const int8_t *from, size_t stride)
{
    int8x16_t row[4];
    FT_UNROLL
    for (size_t i = 0; i < 4; i++)
        row[i] = vcombine_s8(vld1_s8(from + i * stride), vdup_n_s8(0));
    int16x8_t row01 = vreinterpretq_s16_s8(vzip1q_s8(row[0], row[1]));
    int16x8_t row23 = vreinterpretq_s16_s8(vzip1q_s8(row[2], row[3]));
    int32x4_t low = vreinterpretq_s32_s16(vzip1q_s16(row01, row23)); /* columns 0 .. 3 */
    int32x4_t high = vreinterpretq_s32_s16(vzip2q_s16(row01, row23));
    return (strip_quad){ vreinterpretq_s8_s32(vuzp1q_s32(low, high)),
                         vreinterpretq_s8_s32(vuzp2q_s32(low, high)) };
}

/* A quad of x in each word. */
FT_INLINE int8x16_t broadcast_quad(const int8_t *x)
{
    return vreinterpretq_s8_s32(vi_broadcast(x));
}

#endif
