/*
 * chunks.h - a GEMM computed some rows at a time, against its expected bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_CHUNKS_H
#define FT_TESTS_LIB_OPS_CHUNKS_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

enum { CHUNKS_GUARD = 64, CHUNKS_PATTERN = 0x5a };

/* y [m, n] with a guard pattern between and after its rows. */
typedef struct chunked {
    const void *product; /* the argument of `multiply` */

    /* Rows first .. first + rows - 1 of the GEMM, into y. */
    void (*multiply)(const void *product, ft_isa isa, int threads, size_t first, size_t rows,
                     void *y);
    size_t m, n, k, y_stride;
    ft_dtype y_dtype;
    const void *expected; /* chunked_bytes() */
} chunked;

/* The bytes of y and of the guard after it. */
size_t chunked_bytes(size_t m, size_t y_stride, ft_dtype y_dtype);

/* Whether all bytes are as expected, `chunk` rows at a time; a diagnostic names a difference. */
bool chunked_same(const chunked *c, ft_isa isa, int threads, size_t chunk);

#endif
