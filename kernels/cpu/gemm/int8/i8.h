/*
 * i8.h - what every instruction set provides for products of int8 matrices.
 *
 * The weights of a product are first packed into a panel: a private order in which one vector load
 * feeds the multiplier.  A panel is made where it is used, in a thread's scratch, and lives as long
 * as it is hot.  A quad is four neighbouring elements along the sum; everything here counts in
 * quads, so k is padded to a multiple of 4.  Pads must vanish on one side: zeros in x or in the
 * panel (pack_rows and pack_cols put them there, pack_col4 passes on what the file holds).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_I8_H
#define FT_KERNELS_CPU_GEMM_INT8_I8_H

#include "kernels/activation.h"
#include "kernels/cpu/base/isa.h"
#include "runtime/mem.h"

enum {
    FT_I8_PANEL = 64,       /* weight rows of a panel of a matrix product */
    FT_I8_TILE = 6,         /* activation rows that multiply() takes at once */
    FT_I8_WALK = 32,        /* activation rows that walk() takes at most */
    FT_I8_UNIT = 16,        /* packed rows come in multiples of this */
    FT_I8_BLOCK = 32,       /* packed k comes in multiples of this */
    FT_I8_WEIGHT_BYTES = 2, /* at most, of one packed element */
};

/*
 * Cache lines to fetch while a product runs: `lines` of them per k block, blocks `step` bytes
 * apart.  `at` is never NULL.
 */
typedef struct ft_i8_ahead {
    const int8_t *at;
    size_t step, lines;
} ft_i8_ahead;

/* What becomes of the exact sums of one panel of columns; the pads of w_scale and bias are zero. */
typedef struct ft_i8_finish {
    float w_scale[FT_I8_PANEL], bias[FT_I8_PANEL];
    float x_scale;         /* of all rows of the output, or ... */
    const float *x_scales; /* ... of each; NULL: x_scale */
    size_t cols;           /* at most FT_I8_PANEL */
    ft_activation activation;
    const float *residual; /* from the panel's first column on, or NULL */
    size_t residual_stride;
    ft_dtype y_dtype;  /* FT_I8: codes; FT_F32 or FT_F16: real values */
    float out_inverse; /* FT_I8: 1 / scale of y */
    void *y;           /* from the panel's first column on */
    size_t y_stride;
} ft_i8_finish;

/* Rows of a product in flight: at most FT_I8_TILE rows of x against one panel. */
typedef struct ft_i8_tile {
    const int8_t *x;
    size_t x_stride, rows, quads;
    const int32_t *start; /* [rows], from row_starts() */
    int32_t *out;         /* [rows, panel rows rounded up to FT_I8_UNIT] */
    size_t out_stride;
    ft_i8_ahead ahead;
} ft_i8_tile;

typedef struct ft_i8_kernels {
    /* Rows of x up to which walk() is faster than panels; at most FT_I8_WALK, 0 without walk(). */
    size_t walk_rows;

    /*
     * Rows first .. first + rows of a COL4_4R2_8C matrix [n, k] with n padded to `padded_n`; first
     * is a multiple of 8 and rows are at most FT_I8_PANEL.
     */
    void (*pack_col4)(void *panel, const int8_t *w, size_t padded_n, size_t k, size_t first,
                      size_t rows);

    /* A row-major matrix [rows, k], and the transpose of a row-major [k, rows]. */
    void (*pack_rows)(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k);
    void (*pack_cols)(void *panel, const int8_t *from, size_t stride, size_t rows, size_t k);

    /* What the sums of a row of x begin with, so that they end exact. */
    void (*row_starts)(int32_t *start, const int8_t *x, size_t stride, size_t rows, size_t quads);

    /* out = x . panel^T, exact. */
    void (*multiply)(const ft_i8_tile *tile, const void *panel, size_t panel_rows);

    /*
     * out = x . w^T for few rows of x, reading COL4_4R2_8C weights once, in memory order; quads is
     * a multiple of 8, out holds sums until the end, as for multiply().
     */
    void (*walk)(const ft_i8_tile *tile, const int8_t *w, size_t padded_n, size_t first,
                 size_t weight_rows);

    /*
     * Rows of scores [rows, cols] become codes, ft_softmax_code(largest - score, step), and their
     * totals; rows <= FT_I8_TILE, scores are below 2^24.  Scores and codes have room for cols
     * rounded up to FT_I8_PANEL, and the codes there become 0.
     */
    void (*softmax)(int8_t *codes, size_t codes_stride, float *totals, int32_t *scores,
                    size_t scores_stride, size_t rows, size_t cols, float step);

    /* Rows first_row .. first_row + rows of the output, from their sums. */
    void (*finish)(const ft_i8_finish *finish, const int32_t *sums, size_t stride, size_t first_row,
                   size_t rows);
} ft_i8_kernels;

/* The kernels of a usable instruction set. */
const ft_i8_kernels *ft_i8_kernels_of(ft_isa isa);

extern const ft_i8_kernels ft_i8_generic, ft_i8_avx2, ft_i8_avxvnni, ft_i8_avx512;

/* At most the bytes of a panel of `rows` x `k`, on any instruction set. */
static inline size_t ft_i8_panel_bytes(size_t rows, size_t k)
{
    return ft_round_up(rows, FT_I8_UNIT) * ft_round_up(k, FT_I8_BLOCK) * FT_I8_WEIGHT_BYTES;
}

/*
 * The bytes from row to row of a matrix in scratch: an odd number of cache lines, for rows a power
 * of two apart would all contend for the same few places of the first cache.
 */
static inline size_t ft_i8_stride(size_t bytes)
{
    return ft_round_up(bytes, 64) | 64;
}

/* Part `index` of `count` gets the units from the result on, *share of them. */
static inline size_t ft_i8_share(size_t units, size_t index, size_t count, size_t *share)
{
    size_t first = units * index / count;
    *share = units * (index + 1) / count - first;
    return first;
}

#endif
