/*
 * gemm_parts.h - the columns of a GEMM whose output is split into several matrices: of equal width,
 * or a half and two quarters, as queries, keys and values of grouped-query attention are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_GEMM_PARTS_H
#define FT_TESTS_LIB_OPS_GEMM_PARTS_H

#include <stdbool.h>
#include <stddef.h>

static inline size_t part_width(size_t n, int parts, bool uneven, int part)
{
    if (!uneven)
        return n / (size_t) parts;
    return part == 0 ? n / 2 : n / 4;
}

/* The first column of an output matrix. */
static inline size_t part_first(size_t n, int parts, bool uneven, int part)
{
    size_t first = 0;
    for (int i = 0; i < part; i++)
        first += part_width(n, parts, uneven, i);
    return first;
}

#endif
