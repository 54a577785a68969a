/*
 * chunks.c - see chunks.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/chunks.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oneop.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

size_t chunked_bytes(size_t m, size_t y_stride, ft_dtype y_dtype)
{
    return m * y_stride * ft_dtype_size(y_dtype) + CHUNKS_GUARD;
}

bool chunked_same(const chunked *c, ft_isa isa, int threads, size_t chunk)
{
    size_t bytes = chunked_bytes(c->m, c->y_stride, c->y_dtype), at = 0;
    char *found = must_have(bytes, 1);
    const char *expected = c->expected;
    memset(found, CHUNKS_PATTERN, bytes);
    for (size_t row = 0; row < c->m; row += chunk)
        c->multiply(c->product, isa, threads, row, ft_min_size(chunk, c->m - row), found);
    while (at < bytes && found[at] == expected[at])
        at++;
    free(found);
    if (at == bytes)
        return true;
    at /= ft_dtype_size(c->y_dtype);
    diag("%s, %d threads, %zu x %zu x %zu, chunks of %zu: first difference at row %zu, column %zu",
         ft_isa_name(isa), threads, c->m, c->n, c->k, chunk, at / c->y_stride, at % c->y_stride);
    return false;
}
