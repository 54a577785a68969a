/*
 * i8_neon.c - int8 GEMM with the multiplications of every AArch64 processor.
 *
 * SMULL and SMLAL add two products in 16 bits, at most 2 * 128 * 127 = 32512, which does not
 * overflow, even for weights of -128, as long as x is never -128. SADALP adds neighbouring sums to
 * accumulators of 32 bits. So a vector of accumulators has two rows, with two partial sums each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { TILE_STRIPS = 1, ROW_STEP = 1, ACC_VECTORS = 4 /* rows 0 2, 4 6, 1 3, 5 7 */ };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_neon_quads.h"

/*
 * Adds neighbouring sums to the accumulators: an asm, because the compiler otherwise calculates so
 * many products in advance that it spills accumulators.
 */
FT_INLINE void add_pairs(int32x4_t *sum, int16x8_t products)
{
    __asm__ volatile("sadalp %0.4s, %1.8h" : "+w"(*sum) : "w"(products));
}

/* Two quads of four rows, a and b, times two of x. */
FT_INLINE void dot_pair(int32x4_t sum[2], int8x16_t a, int8x16_t b, int8x16_t x_a, int8x16_t x_b)
{
    int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(x_a));
    int16x8_t high = vmull_high_s8(a, x_a);
    add_pairs(&sum[0], vmlal_s8(low, vget_low_s8(b), vget_low_s8(x_b)));
    add_pairs(&sum[1], vmlal_high_s8(high, b, x_b));
}

/* A pair of quads of each row of x times those at w. */
FT_INLINE void dot_rows(tile_acc sum, const int8_t *w, const int8_t *const x[FT_I8_TILE], size_t at,
                        int rows)
{
    FT_UNROLL
    for (int row = 0; row < rows; row++) {
        int8x16_t x_a = broadcast_quad(x[row] + at), x_b = broadcast_quad(x[row] + at + 4);
        FT_UNROLL
        for (size_t v = 0; v < 2; v++)
            dot_pair(sum[row][0].v + 2 * v, vld1q_s8(w + v * 16), vld1q_s8(w + v * 16 + QUAD_BYTES),
                     x_a, x_b);
    }
}

FT_INLINE void dot_block(tile_acc sum, const char *w, size_t strip,
                         const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    (void) strip;
    for (size_t q = 0; q < BLOCK_QUADS; q += 2)
        dot_rows(sum, (const int8_t *) w + q * QUAD_BYTES, x, at + 4 * q, rows);
}

FT_INLINE void dot_tail(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, size_t quads, int rows)
{
    (void) strip;
    const int8_t *weights = (const int8_t *) w;
    const int8x16_t zero = vdupq_n_s8(0);
    for (size_t q = 0; q < quads; q++, weights += QUAD_BYTES, at += 4) {
        FT_UNROLL
        for (int row = 0; row < rows; row++) {
            int8x16_t x_quad = broadcast_quad(x[row] + at);
            dot_pair(sum[row][0].v, vld1q_s8(weights), zero, x_quad, zero);
            dot_pair(sum[row][0].v + 2, vld1q_s8(weights + 16), zero, x_quad, zero);
        }
    }
}

FT_INLINE void store_acc(int32_t *to, tile_acc sum, int row, int strip)
{
    const int32x4_t *v = sum[row][strip].v;
    store_interleaved(to, vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

/* Four rows of weights, the even ones or the odd ones, stay in registers. */
FT_INLINE void stream_rows(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                           int32_t *out)
{
    int8x16_t w[BLOCK_QUADS];
    FT_UNROLL
    for (size_t q = 0; q < BLOCK_QUADS; q++)
        w[q] = vld1q_s8(weights + q * 16);
    for (size_t row = 0; row < tile->rows; row++, x += tile->x_stride, out += tile->out_stride) {
        int32x4_t sum[2] = { vdupq_n_s32(0), vdupq_n_s32(0) };
        FT_UNROLL
        for (size_t q = 0; q < BLOCK_QUADS; q += 2)
            dot_pair(sum, w[q], w[q + 1], broadcast_quad(x + 4 * q), broadcast_quad(x + 4 * q + 4));
        vst1q_s32(out, vaddq_s32(vld1q_s32(out), vpaddq_s32(sum[0], sum[1])));
    }
}

static void stream_tile(const ft_i8_tile *tile, const int8_t *weights, const int8_t *x,
                        int32_t *out)
{
    stream_rows(tile, weights, x, out);
    stream_rows(tile, weights + 128, x, out + 4);
}

const ft_i8_kernels ft_i8_neon = { FT_I8_KERNELS, .stream = stream, .stream_rows = 8 };
