/*
 * f64.h - the double-precision kernel that every instruction set provides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_LINALG_F64_H
#define FT_KERNELS_CPU_LINALG_F64_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

enum { FT_DOUBLE_MAX_ROWS = 8, FT_DOUBLE_MAX_COLS = 24 }; /* of a tile, on any instruction set */

/*
 * c += a . b or c -= a . b for one register tile; each product is rounded, then added.
 */
typedef struct ft_double_tile {
    const double *a; /* [k, rows], packed */
    const double *b; /* [k, cols], packed */
    size_t k;
    bool subtract;
    bool exact_products; /* all products are exact in double precision: they may be fused */
    double *c; /* [rows, cols] */
    size_t c_stride;
} ft_double_tile;

typedef struct ft_double_kernels {
    size_t rows, cols; /* of a tile */
    void (*multiply_add)(const ft_double_tile *tile);

    /* to[j] -= factor * x[j]: product, then difference. */
    void (*subtract_scaled)(double *to, double factor, const double *x, size_t n);
} ft_double_kernels;

/* The kernels of a supported instruction set. */
const ft_double_kernels *ft_double_kernels_for(ft_isa isa);

#endif
