/*
 * f32.h - the float GEMM kernels that every instruction set provides.
 *
 * The k dimension is split into k_tiles of 512 elements. Within a k_tile there are 16 partial sums:
 * lane i accumulates the products of elements i, i + 16, ... by fmaf, in order, starting from 0;
 * then a tree adds the lanes, those 8 apart first, then 4, 2, 1. The sums of the k_tiles are added
 * in order. So an element of the output depends only on its row of x and its row of w: neither on
 * the number of rows nor on the instruction set.
 *
 * Vectors run along k because both matrices are contiguous in k: weights are read from the mapped
 * file without repacking, F16 and BF16 are converted on load, and a GEMV runs at memory bandwidth.
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
    FT_FLOAT_K_TILE = 512,
    FT_FLOAT_MAX_ROWS = 6, /* maximum rows of x in a register tile, on any instruction set */
};

/*
 * A few rows of x against any number of rows of w, for at most FT_FLOAT_K_TILE elements of k. Both
 * are row-major and k is a multiple of FT_FLOAT_LANES; or both are packed: see pack().
 */
typedef struct ft_float_tile {
    const float *x; /* [rows, k] */
    size_t x_stride;
    const void *w; /* [cols, k] of w_dtype */
    size_t w_stride;
    ft_dtype w_dtype;
    bool packed;          /* w_dtype is F32, and the strides are ignored */
    bool accumulate;      /* adds to the accumulators; otherwise overwrites them */
    size_t rows, cols, k; /* rows: at most ft_float_kernels.rows */
    float *acc;           /* [rows, cols], with space for complete tiles of columns */
    size_t acc_stride;
} ft_float_tile;

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

    /*
     * Packs at most `tile` rows [rows, k] for multiply(): FT_FLOAT_LANES elements of each of `tile`
     * rows, then the next FT_FLOAT_LANES of each. Missing rows and the tail of k are padded with
     * zeros. x is one such tile of `rows`, w consecutive tiles of `cols`. Packing makes an operand
     * that is read often one contiguous stream; rows a power of two apart would conflict in the
     * same few sets of the L1 cache.
     */
    void (*pack)(float *to, const void *from, size_t stride, ft_dtype dtype, size_t rows,
                 size_t tile, size_t k);
} ft_float_kernels;

/* The kernels of a supported instruction set. */
const ft_float_kernels *ft_float_kernels_for(ft_isa isa);

#endif
