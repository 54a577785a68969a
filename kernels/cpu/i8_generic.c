/*
 * i8_generic.c - int8 products in plain C: for every processor, and to compare the others with.
 *
 * A panel keeps each row whole, as 16-bit numbers: compilers know how to vectorise a sum of
 * products of those.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/i8_finish.h"
#include "kernels/cpu/i8_softmax.h"

static size_t padded(size_t k)
{
    return (k + FT_I8_BLOCK - 1) / FT_I8_BLOCK * FT_I8_BLOCK;
}

static void pack_col4(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows)
{
    int16_t *to = panel;
    for (size_t row = 0; row < rows; row++, to += padded(k))
        for (size_t col = 0; col < padded(k); col++)
            to[col] = w[ft_offset_col4(first + row, col, padded_n)];
}

static void pack_rows(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    int16_t *to = panel;
    for (size_t row = 0; row < rows; row++, to += padded(k))
        for (size_t col = 0; col < padded(k); col++)
            to[col] = col < k ? from[row * stride + col] : 0;
}

static void pack_cols(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k)
{
    int16_t *to = panel;
    for (size_t row = 0; row < rows; row++, to += padded(k))
        for (size_t col = 0; col < padded(k); col++)
            to[col] = col < k ? from[col * stride + row] : 0;
}

static void row_starts(int32_t *start, const int8_t *x, size_t stride, size_t rows, size_t quads)
{
    (void) x, (void) stride, (void) quads;
    memset(start, 0, rows * sizeof *start);
}

static void multiply(const ft_i8_tile *tile, const void *panel, size_t panel_rows)
{
    const int16_t *w = panel;
    for (size_t col = 0; col < panel_rows; col++, w += padded(4 * tile->quads))
        for (size_t row = 0; row < tile->rows; row++) {
            const int8_t *x = tile->x + row * tile->x_stride;
            int32_t sum = tile->start[row];
            for (size_t i = 0; i < 4 * tile->quads; i++)
                sum += x[i] * w[i];
            tile->out[row * tile->out_stride + col] = sum;
        }
}

const ft_i8_kernels ft_i8_generic = {
    .walk_rows = 0,
    .pack_col4 = pack_col4,
    .pack_rows = pack_rows,
    .pack_cols = pack_cols,
    .row_starts = row_starts,
    .multiply = multiply,
    .softmax = softmax,
    .finish = finish,
};
