/*
 * f32.h - the float GEMM kernels that every instruction set provides.
 *
 * The k dimension is split into k tiles of 4096 elements. Within a k tile there are 16 partial
 * sums: lane i accumulates the products of elements i, i + 16, ... by fmaf, in order, starting from
 * 0; then a tree adds the lanes, those 8 apart first, then 4, 2, 1. The sums of the k tiles are
 * added in order. So an element of the output depends only on its row of x and its row of w:
 * neither on the number of rows nor on the instruction set.
 *
 * Two kernels compute these sums. With few rows of x, vectors run along k, one register holds the
 * lanes of a sum, and weights are read in place: a GEMV runs at memory bandwidth. With many rows,
 * both operands are packed, vectors run along n, and the lanes are computed one after the other: so
 * the inner loop is that of an outer product, without horizontal sums.
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
    FT_FLOAT_K_TILE = 4096,
    FT_FLOAT_MAX_ROWS = 6,         /* maximum rows of x in a register tile, ... */
    FT_FLOAT_MAX_PACKED_ROWS = 14, /* ... also if packed, on any instruction set */
};

/*
 * A few rows of x against any number of rows of w, for at most FT_FLOAT_K_TILE elements of k. Both
 * are row-major and k is a multiple of FT_FLOAT_LANES.
 */
typedef struct ft_float_tile {
    const float *x; /* [rows, k] */
    size_t x_stride;
    const void *w; /* [cols, k] of w_dtype */
    size_t w_stride;
    ft_dtype w_dtype;
    bool accumulate;      /* adds to the accumulators; otherwise overwrites them */
    size_t rows, cols, k; /* rows: at most ft_float_kernels.rows */
    float *acc;           /* [rows, cols], with space for complete tiles of columns */
    size_t acc_stride;
} ft_float_tile;

/* A register tile of packed operands: ft_float_kernels.packed_cols rows of w. */
typedef struct ft_float_packed_tile {
    const float *x, *w; /* from pack() */
    size_t rows, k;     /* rows: at most ft_float_kernels.packed_rows; k: at most FT_FLOAT_K_TILE */
    bool accumulate;    /* as above */
    float *acc;         /* [rows, packed_cols] */
    size_t acc_stride;
    const void *prefetch; /* memory that is needed soon, brought into the L2 cache meanwhile */
    size_t prefetch_bytes;
} ft_float_packed_tile;

/*
 * y += p . v, the P V product of attention. Each element of y is one chain of fmaf over the keys in
 * order, so the sum may be split anywhere and continued later.
 */
typedef struct ft_float_weighted_sum {
    const float *p; /* [rows, keys] */
    size_t p_stride;
    const void *v; /* [keys, cols] of v_dtype */
    size_t v_stride;
    ft_dtype v_dtype;
    size_t rows, keys, cols; /* rows: of one register tile; cols: a multiple of FT_FLOAT_LANES */
    float *y;                /* [rows, cols] */
    size_t y_stride;
} ft_float_weighted_sum;

typedef struct ft_float_kernels {
    size_t rows, cols; /* of a register tile */
    void (*gemm_tile)(const ft_float_tile *tile);
    void (*weighted_sum)(const ft_float_weighted_sum *weighted_sum);

    size_t packed_rows, packed_cols; /* of a packed register tile */
    void (*gemm_packed_tile)(const ft_float_packed_tile *tile);

    /*
     * Packs `rows` rows [rows, k] for gemm_packed_tile(), as floats: lane by lane, and within a
     * lane step by step, so that the elements i of all rows are neighbours. A step has `width`
     * rows, of which those from `rows` on repeat the last one; k is padded with zeros to a multiple
     * of FT_FLOAT_LANES. Lanes have the order in which the tree adds them, and start
     * ft_float_lane_stride() floats apart. For x, rows and width are those of the tile; for w,
     * width is packed_cols.
     */
    void (*pack)(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t width, size_t k);

    /* to [k, cols] = from [cols, k] transposed; rows of `to` are padded with zeros to to_stride. */
    void (*transpose)(float *to, size_t to_stride, const float *from, size_t stride, size_t cols,
                      size_t k);
} ft_float_kernels;

/*
 * Floats from one lane of a packed operand to the next: an odd number of cache lines, because lanes
 * a multiple of 4 KiB apart would share the same sets of the L1 cache. A vector that is stored at
 * the last step of a lane may reach into the padding.
 */
static inline size_t ft_float_lane_stride(size_t width, size_t k)
{
    size_t steps = (k + FT_FLOAT_LANES - 1) / FT_FLOAT_LANES;
    size_t lines = (steps * width + FT_FLOAT_LANES - 1) / 16 + 1;
    return (lines | 1) * 16;
}

/* Floats of one packed k tile of at most k elements. */
static inline size_t ft_float_packed_size(size_t width, size_t k)
{
    return FT_FLOAT_LANES * ft_float_lane_stride(width, k);
}

/* The kernels of a supported instruction set. */
const ft_float_kernels *ft_float_kernels_for(ft_isa isa);

#endif
