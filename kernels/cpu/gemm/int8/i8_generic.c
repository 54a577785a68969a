/*
 * i8_generic.c - int8 GEMM in plain C: for every processor, and the reference for the others.
 *
 * A panel holds each row contiguously as 16-bit numbers: compilers vectorize dot products of those.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/gemm/int8/i8_epilogue.h"
#include "kernels/cpu/gemm/int8/i8_softmax.h"

enum { K_TILE = 256 }; /* of k */

static size_t padded_k(size_t k)
{
    return (k + FT_I8_BLOCK - 1) / FT_I8_BLOCK * FT_I8_BLOCK;
}

/* In a block of 32 columns, the quads of one row are 16 bytes apart. */
static void pack_col4(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows)
{
    for (size_t at = 0; at < k; at += FT_I8_BLOCK)
        for (size_t row = 0; row < rows; row++) {
            const int8_t *from = w + ft_offset_col4(first + row, at, padded_n);
            int16_t *to = (int16_t *) panel + row * padded_k(k) + at;
            for (size_t i = 0; i < FT_I8_BLOCK; i++)
                to[i] = from[i / 4 * 16 + i % 4];
        }
}

static void pack_rows(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    int16_t *to = panel;
    for (size_t row = 0; row < rows; row++, to += padded_k(k))
        for (size_t col = 0; col < padded_k(k); col++)
            to[col] = col < k ? from[row * stride + col] : 0;
}

static void pack_cols(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    int16_t *to = panel;
    for (size_t row = 0; row < rows; row++, to += padded_k(k))
        for (size_t col = 0; col < padded_k(k); col++)
            to[col] = col < k ? from[col * stride + row] : 0;
}

static void acc_init_rows(int32_t *acc_init, const int8_t *x, size_t stride, size_t rows,
                          size_t quads)
{
    (void) x, (void) stride, (void) quads;
    memset(acc_init, 0, rows * sizeof *acc_init);
}

/* Four dot products of `count` elements, a compile-time constant so that the loop is unrolled. */
FT_INLINE void dot_x4(int32_t acc[4], const int16_t *x, const int16_t *w, size_t stride,
                      size_t count)
{
    const int16_t *w1 = w + stride, *w2 = w + 2 * stride, *w3 = w + 3 * stride;
    int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (size_t i = 0; i < count; i++) {
        sum0 += x[i] * w[i];
        sum1 += x[i] * w1[i];
        sum2 += x[i] * w2[i];
        sum3 += x[i] * w3[i];
    }
    acc[0] += sum0;
    acc[1] += sum1;
    acc[2] += sum2;
    acc[3] += sum3;
}

/* One k_tile of every row of x against all rows of the panel. */
FT_INLINE void gemm_k_tile(const ft_i8_tile *tile, const int16_t *w, size_t panel_rows,
                           size_t stride, size_t at, size_t count)
{
    int16_t x[FT_I8_TILE][K_TILE];
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t i = 0; i < count; i++)
            x[row][i] = at + i < 4 * tile->k_quads ? tile->x[row * tile->x_stride + at + i] : 0;
    for (size_t col = 0; col < panel_rows; col += 4)
        for (size_t row = 0; row < tile->rows; row++)
            dot_x4(tile->out + row * tile->out_stride + col, x[row], w + col * stride + at, stride,
                   count);
}

static void gemm_tile(const ft_i8_tile *tile, const void *panel, size_t panel_rows)
{
    size_t k = padded_k(4 * tile->k_quads), at = 0;
    for (size_t row = 0; row < tile->rows; row++)
        for (size_t col = 0; col < ft_round_up(panel_rows, 4); col++)
            tile->out[row * tile->out_stride + col] = tile->acc_init[row];
    for (; at + K_TILE <= k; at += K_TILE)
        gemm_k_tile(tile, panel, panel_rows, k, at, K_TILE);
    for (; at < k; at += FT_I8_BLOCK)
        gemm_k_tile(tile, panel, panel_rows, k, at, FT_I8_BLOCK);
}

const ft_i8_kernels ft_i8_generic = { FT_I8_KERNELS };
