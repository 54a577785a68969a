/*
 * f32.h - what every instruction set provides for products of float matrices.
 *
 * A sum over k is cut into pieces of 512 elements.  In a piece there are 16 sums side by side: lane
 * i adds the products of elements i, i + 16, ... by fmaf, in order, from 0 on; then the lanes are
 * added as a tree, those 8 apart, then 4, 2, 1.  What the pieces give is added in order.  So an
 * element of a product depends on its row of x and its row of w and on nothing else: neither on how
 * many rows there are, nor on the instruction set.
 *
 * Lanes lie along k because that is how both matrices lie in memory: weights are used from the
 * mapped file as they are, halves become floats on the way into registers, and one row of x is as
 * fast as memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_F32_F32_H
#define FT_KERNELS_CPU_GEMM_F32_F32_H

#include "kernels/cpu/base/isa.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FT_FLOAT_LANES = 16,
    FT_FLOAT_PIECE = 512,
    FT_FLOAT_ROWS = 6, /* rows of x that a tile has at most, on any instruction set */
};

/*
 * A few rows of x against any number of rows of w, on at most FT_FLOAT_PIECE elements of k.  They
 * lie row by row, and k is a multiple of FT_FLOAT_LANES; or both are packed: see pack().
 */
typedef struct ft_float_tile {
    const float *x; /* [rows, k] */
    size_t x_stride;
    const void *w; /* [cols, k] of w_dtype */
    size_t w_stride;
    ft_dtype w_dtype;
    bool packed;          /* w_dtype is F32, and strides do not count */
    bool adds;            /* to the sums; else they begin here */
    size_t rows, cols, k; /* rows: as many as the kernels take, at most */
    float *sums;          /* [rows, cols], with room for whole tiles of columns */
    size_t sums_stride;
} ft_float_tile;

/*
 * y += p . v: rows of v, mixed by the weights of p.  Each element of y is one chain of fmaf over
 * the keys in order, so that a sum may be cut anywhere and go on later.
 */
typedef struct ft_float_mix {
    const float *p; /* [rows, keys] */
    size_t p_stride;
    const void *v; /* [keys, cols] of v_dtype */
    size_t v_stride;
    ft_dtype v_dtype;
    size_t rows, keys, cols; /* rows: of a tile; cols: a multiple of FT_FLOAT_LANES */
    float *y;                /* [rows, cols] */
    size_t y_stride;
} ft_float_mix;

typedef struct ft_float_kernels {
    size_t rows, cols; /* of a tile in registers */
    void (*multiply)(const ft_float_tile *tile);
    void (*mix)(const ft_float_mix *mix);

    /*
     * Pack at most `tile` rows [rows, k] for multiply(): FT_FLOAT_LANES elements of each of `tile`
     * rows, then the next ones.  Missing rows and what lies behind the end of a row are zeros.  x
     * is one such tile of `rows`, w tiles of `cols`, one after the other.  An operand that is read
     * often becomes one stream by that; rows a power of two apart would all lie in the same few
     * places of the first cache.
     */
    void (*pack)(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t tile, size_t k);
} ft_float_kernels;

/* The kernels of a usable instruction set. */
const ft_float_kernels *ft_float_kernels_of(ft_isa isa);

#endif
