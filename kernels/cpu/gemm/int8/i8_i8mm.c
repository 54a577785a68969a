/*
 * i8_i8mm.c - int8 GEMM with SMMLA, which multiplies two rows of x by two of weights, 8 k each.
 *
 * Panels hold two quads of a strip together: four vectors of two rows x 8 k, the rows 0 2, 4 6, 1 3
 * and 5 7. The accumulators of two rows of x lie in the two strip_acc of these rows: the vectors
 * 0 .. 3 of both belong to the four vectors of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { TILE_STRIPS = 2, ROW_STEP = 2, ACC_VECTORS = 2 };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_sdot.h"

enum { X_PAIRS = FT_I8_TILE / 2, PAIR_VECTORS = 2 * ACC_VECTORS, PAIR_BYTES = 2 * QUAD_BYTES };

/* Two rows of neighbouring quads a and b: rows 0 2 and 4 6 of the even ones, for example. */
FT_INLINE void store_pair(int8_t *to, int8x16_t a, int8x16_t b)
{
    int32x4_t a4 = vreinterpretq_s32_s8(a), b4 = vreinterpretq_s32_s8(b);
    vst1q_s8(to, vreinterpretq_s8_s32(vzip1q_s32(a4, b4)));
    vst1q_s8(to + 16, vreinterpretq_s8_s32(vzip2q_s32(a4, b4)));
}

/* The second quad of a pair that has none is zero. */
FT_INLINE void store_quads(char *strip, size_t quad_bytes, size_t q, const strip_quad *quads,
                           size_t count)
{
    const strip_quad zero = { vdupq_n_s8(0), vdupq_n_s8(0) };
    int8_t *to = (int8_t *) strip + q * quad_bytes;
    for (size_t i = 0; i < count; i += 2, to += 2 * quad_bytes) {
        strip_quad next = i + 1 < count ? quads[i + 1] : zero;
        store_pair(to, quads[i].even, next.even);
        store_pair(to + 32, quads[i].odd, next.odd);
    }
}

/* As in i8_sdot.h, the compiler would spill accumulators with the intrinsic. */
FT_INLINE void multiply_add(int32x4_t *sum, int8x16_t x, int8x16_t weights)
{
    __asm__ volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(*sum) : "w"(x), "w"(weights));
}

/* Pairs of rows of x, 8 k each, times the pair of quads at w. */
FT_INLINE void multiply_pair(tile_acc sum, const int8_t *w, size_t strip,
                             const int8x16_t x8[X_PAIRS], int rows)
{
    FT_UNROLL
    for (size_t i = 0; i < TILE_STRIPS; i++) {
        FT_UNROLL
        for (size_t v = 0; v < PAIR_VECTORS; v++) {
            int8x16_t weights = vld1q_s8(w + i * strip + v * 16);
            FT_UNROLL
            for (int pair = 0; 2 * pair < rows; pair++) {
                int row = 2 * pair + (int) v / 2;
                multiply_add(&sum[row][i].v[v % 2], x8[pair], weights);
            }
        }
    }
}

FT_INLINE void dot_block(tile_acc sum, const char *w, size_t strip,
                         const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    const int8_t *weights = (const int8_t *) w;
    FT_UNROLL
    for (size_t q = 0; q < BLOCK_QUADS; q += 4) {
        int8x16_t low[X_PAIRS], high[X_PAIRS];
        FT_UNROLL
        for (int pair = 0; 2 * pair < rows; pair++) {
            int64x2_t first = vreinterpretq_s64_s8(vld1q_s8(x[2 * pair] + at + 4 * q));
            int64x2_t second = vreinterpretq_s64_s8(vld1q_s8(x[2 * pair + 1] + at + 4 * q));
            low[pair] = vreinterpretq_s8_s64(vzip1q_s64(first, second));
            high[pair] = vreinterpretq_s8_s64(vzip2q_s64(first, second));
        }
        multiply_pair(sum, weights + q * QUAD_BYTES, strip, low, rows);
        multiply_pair(sum, weights + q * QUAD_BYTES + PAIR_BYTES, strip, high, rows);
    }
}

/* The last quads of a row, one or two. */
FT_INLINE int8x8_t load_tail(const int8_t *x, size_t quads)
{
    uint32_t first, second = 0;
    memcpy(&first, x, sizeof first);
    if (quads > 1)
        memcpy(&second, x + 4, sizeof second);
    return vcreate_s8((uint64_t) second << 32 | first);
}

FT_INLINE void dot_tail(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, size_t quads, int rows)
{
    const int8_t *weights = (const int8_t *) w;
    for (size_t q = 0; q < quads; q += 2, at += 8) {
        int8x16_t x8[X_PAIRS];
        FT_UNROLL
        for (int pair = 0; 2 * pair < rows; pair++)
            x8[pair] = vcombine_s8(load_tail(x[2 * pair] + at, quads - q),
                                   load_tail(x[2 * pair + 1] + at, quads - q));
        multiply_pair(sum, weights + q * QUAD_BYTES, strip, x8, rows);
    }
}

/* The half of two accumulators that belongs to the first or to the second row of x. */
FT_INLINE int32x4_t row_of_pair(int32x4_t a, int32x4_t b, int row)
{
    int64x2_t a2 = vreinterpretq_s64_s32(a), b2 = vreinterpretq_s64_s32(b);
    return vreinterpretq_s32_s64(row % 2 == 0 ? vzip1q_s64(a2, b2) : vzip2q_s64(a2, b2));
}

FT_INLINE void store_acc(int32_t *to, tile_acc sum, int row, int strip)
{
    const strip_acc *even = &sum[row / 2 * 2][strip], *odd = &sum[row / 2 * 2 + 1][strip];
    store_interleaved(to, row_of_pair(even->v[0], even->v[1], row),
                      row_of_pair(odd->v[0], odd->v[1], row));
}

const ft_i8_kernels ft_i8_i8mm = { FT_I8_KERNELS, .stream = stream, .stream_rows = 8 };
