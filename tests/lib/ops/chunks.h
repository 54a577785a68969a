/*
 * chunks.h - a product computed some rows at a time, against bytes that are expected.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_CHUNKS_H
#define FT_TESTS_LIB_OPS_CHUNKS_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

enum { CHUNKS_GUARD = 64, CHUNKS_PATTERN = 0x5a };

/* y [m, n] with a pattern between its rows and behind them. */
typedef struct chunked {
    const void *product; /* what `multiply` gets */

    /* Rows first .. first + rows - 1 of the product, into their place in y. */
    void (*multiply)(const void *product, ft_isa isa, int threads, size_t first, size_t rows,
                     void *y);
    size_t m, n, k, y_stride;
    ft_dtype y_dtype;
    const void *expected; /* chunked_bytes() */
} chunked;

/* Of y, and of the guard behind it. */
size_t chunked_bytes(size_t m, size_t y_stride, ft_dtype y_dtype);

/* Whether all bytes are the expected ones, `chunk` rows at a time; else a diagnostic says where. */
bool chunked_same(const chunked *c, ft_isa isa, int threads, size_t chunk);

#endif
