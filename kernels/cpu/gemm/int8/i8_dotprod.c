/*
 * i8_dotprod.c - int8 GEMM with SDOT.
 *
 * A register tile is 6 rows of x by 16 of weights: 24 accumulators, and the 6 vectors of x whose
 * lanes are multiplied with each vector of weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

enum { TILE_STRIPS = 2, ROW_STEP = 1, ACC_VECTORS = 2 /* even rows, odd rows */ };

#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"
#include "kernels/cpu/gemm/int8/i8_neon_quads.h"
#include "kernels/cpu/gemm/int8/i8_sdot.h"

/* Accumulates the products of quad `lane` of x4 and the quads at w. */
FT_INLINE void dot_quad(tile_acc sum, const int8_t *w, size_t strip, const int8x16_t *x4,
                        size_t lane, int rows)
{
    FT_UNROLL
    for (size_t i = 0; i < TILE_STRIPS; i++) {
        FT_UNROLL
        for (size_t v = 0; v < ACC_VECTORS; v++) {
            int8x16_t weights = vld1q_s8(w + i * strip + v * 16);
            FT_UNROLL
            for (int row = 0; row < rows; row++)
                dot_lane(&sum[row][i].v[v], weights, x4[row], lane);
        }
    }
}

FT_INLINE void dot_block(tile_acc sum, const char *w, size_t strip,
                         const int8_t *const x[FT_I8_TILE], size_t at, int rows)
{
    const int8_t *weights = (const int8_t *) w;
    FT_UNROLL
    for (size_t q = 0; q < BLOCK_QUADS; q += 4) {
        int8x16_t x4[FT_I8_TILE];
        FT_UNROLL
        for (int row = 0; row < rows; row++)
            x4[row] = vld1q_s8(x[row] + at + 4 * q);
        FT_UNROLL
        for (size_t lane = 0; lane < 4; lane++)
            dot_quad(sum, weights + (q + lane) * QUAD_BYTES, strip, x4, lane, rows);
    }
}

FT_INLINE void dot_tail(tile_acc sum, const char *w, size_t strip,
                        const int8_t *const x[FT_I8_TILE], size_t at, size_t quads, int rows)
{
    const int8_t *weights = (const int8_t *) w;
    for (size_t q = 0; q < quads; q++) {
        int8x16_t x4[FT_I8_TILE];
        FT_UNROLL
        for (int row = 0; row < rows; row++)
            x4[row] = broadcast_quad(x[row] + at + 4 * q);
        dot_quad(sum, weights + q * QUAD_BYTES, strip, x4, 0, rows);
    }
}

FT_INLINE void store_acc(int32_t *to, tile_acc sum, int row, int strip)
{
    store_interleaved(to, sum[row][strip].v[0], sum[row][strip].v[1]);
}

const ft_i8_kernels ft_i8_dotprod = { FT_I8_KERNELS, .stream = stream, .stream_rows = 8 };
