/*
 * groupwise.h - float weights become codes of 4 or 8 bits with a scale for each row and group.
 *
 * What the numbers mean is in kernels/groupwise.h.  First each group of a row gets a grid, the values
 * that its codes can stand for; then each weight gets a code, by default that of the nearest value.
 * The two steps are apart because others choose codes by more than the distance.
 *
 * The unit of work is a panel, 32 rows.  Nothing depends on what other panels hold, so a matrix of
 * any size is quantized panel by panel, by any number of threads, to the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUPWISE_H
#define FT_CALIBRATE_WEIGHTS_GROUPWISE_H

#include "kernels/groupwise.h"

enum { FT_PANEL_ROWS = 32 };

/* What the codes of one group of one row stand for: scale * (code - zero), code 0 .. most. */
typedef struct ft_blocks_grid {
    float scale, inverse; /* the scale is a float16, positive and finite; inverse = 1 / scale */
    int32_t zero, most;
} ft_blocks_grid;

typedef struct ft_blocks_panel ft_blocks_panel;
typedef struct ft_blocks_how ft_blocks_how;

/*
 * Choose the codes of a panel whose grids stand.  It may overwrite the panel's weights, so what
 * rounding one column did wrong can be put right in others.  Called by several threads at once for
 * different panels: it may read `user`, not change it.
 */
typedef void (*ft_blocks_round)(const void *user, ft_blocks_panel *panel, const ft_blocks_how *how);

struct ft_blocks_how {
    int bits;        /* 4 or 8 */
    int32_t group;   /* as in ft_blocks */
    bool by_codes;   /* as in ft_blocks: nothing here depends on it */
    bool asymmetric; /* each group has a zero of its own; else it is 8 or 128 */
    bool clip;       /* search how far a group's range should fall short of its extremes */

    /* [columns], finite, not below 0: the square of an error in a column counts so many times when
     * grids are chosen.  NULL: all the same. */
    const float *importance;

    ft_blocks_round round; /* NULL: to the nearest */
    const void *user;      /* of `round` */

    /* [columns, columns], symmetric, sums of products of inputs: by them errors of results are
     * told.  NULL: by `importance` alone, or not at all. */
    const double *moments;
};

/* Some rows of a matrix, and what becomes of them. */
struct ft_blocks_panel {
    size_t rows, cols;    /* at most FT_PANEL_ROWS rows */
    float *weight;        /* [rows, cols] */
    ft_blocks_grid *grid; /* [rows, groups] */
    uint8_t *code;        /* [rows, cols] */
    double *work;         /* [2, FT_PANEL_ROWS, cols]: memory for `round` */
};

/* Groups of a row. */
static inline size_t ft_blocks_how_groups(const ft_blocks_how *how, size_t cols)
{
    return ft_blocks_groups(&(ft_blocks){ .group = how->group }, cols);
}

/* Columns of the group that begins at column `first`. */
static inline size_t ft_blocks_group_cols(const ft_blocks_how *how, size_t cols, size_t first)
{
    size_t group = (size_t) how->group, left = cols - first;
    return group == 0 || group > left ? left : group;
}

/*
 * The grid for n neighbouring weights of a row, all finite, with magnitudes up to 65504 * 7;
 * `importance` is that of these columns, or NULL.
 *
 * Symmetric: the extreme of the group is code +-7 or +-127 from zero.  Where it is negative, the
 * grid in which it is -8 or -128 is finer by an eighth, but ends earlier on the other side; it is
 * taken if the sum of squared errors is smaller.  Asymmetric: from the lowest to the highest
 * weight, both sides stretched to include 0, which is always on the grid.
 * With `clip` the same for ranges that are 0.95, 0.9 ... 0.5 of that; the smallest error wins,
 * of equal ones the widest range.  A group of zeros has scale 1.
 */
ft_blocks_grid ft_blocks_choose(const float *weight, size_t n, const float *importance,
                                const ft_blocks_how *how);

/* The nearest whole number, of two the even one; magnitudes up to 2^22. */
static inline float ft_blocks_whole(float x)
{
    const float large = 12582912.0f; /* 1.5 * 2^23: what is added to it loses its fraction */
    return (x + large) - large;
}

/* The nearest code, of two the one at an even distance from zero. */
static inline uint8_t ft_blocks_nearest(const ft_blocks_grid *grid, float weight)
{
    float low = (float) -grid->zero, high = (float) (grid->most - grid->zero);
    float code = weight * grid->inverse;
    code = code < high ? code : high;
    code = code > low ? code : low;
    return (uint8_t) ((int32_t) ft_blocks_whole(code) + grid->zero);
}

static inline float ft_blocks_real(const ft_blocks_grid *grid, uint8_t code)
{
    return grid->scale * (float) (code - grid->zero);
}

/* Weights to grids and codes. */
void ft_blocks_quantize(ft_blocks_panel *panel, const ft_blocks_how *how);

/*
 * Put panel number `index` of a matrix of `rows` rows where it belongs.  Pads become 0.
 *
 *   codes  [ft_panel_bytes(32, cols, bits)] of this panel alone
 *   scale  of the whole matrix, as in ft_blocks; so `zero`, NULL where grids are symmetric
 */
void ft_blocks_store(uint32_t *codes, uint16_t *scale, uint8_t *zero, size_t index, size_t rows,
                     const ft_blocks_panel *panel, const ft_blocks_how *how);

#endif
