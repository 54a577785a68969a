/*
 * groupwise.h - group-wise quantization of float weights to 4 or 8 bits, with a scale per row and
 * group.
 *
 * kernels/groupwise.h defines the format. First each group of a row gets a grid, the set of values
 * it can represent; then each weight is rounded to a value of the grid, by default the nearest. The
 * two steps are separate because other rounding methods use more than the distance.
 *
 * The unit of work is a panel of 32 rows. Panels are independent, so a matrix of any size is
 * quantized panel by panel, by any number of threads, to the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUPWISE_H
#define FT_CALIBRATE_WEIGHTS_GROUPWISE_H

#include "kernels/groupwise.h"

/* The grid of one group of one row: scale * (q - zero), q in 0 .. max_q. */
typedef struct ft_groupwise_grid {
    float scale, inverse; /* the scale is a float16, positive and finite; inverse = 1 / scale */
    int32_t zero, max_q;
} ft_groupwise_grid;

typedef struct ft_groupwise_panel ft_groupwise_panel;
typedef struct ft_groupwise_options ft_groupwise_options;

/*
 * Rounds the weights of a panel whose grids are set. It may overwrite the panel's weights, to
 * compensate the error of one column in others. Called by several threads at once for different
 * panels: it may read `user`, but not change it.
 */
typedef void (*ft_groupwise_round_fn)(const void *user, ft_groupwise_panel *panel,
                                      const ft_groupwise_options *options);

struct ft_groupwise_options {
    int bits;              /* 4 or 8 */
    int32_t group;         /* group size, as in ft_groupwise */
    bool int8_activations; /* as in ft_groupwise; not used here */
    bool asymmetric;       /* each group has its own zero point; else it is 8 or 128 */
    bool clip;             /* search for the clipping ratio of each group's range */

    /*
     * [columns], finite, not negative: weight of the square error of each column when grids are
     * chosen. NULL: all equal.
     */
    const float *importance;

    /*
     * [columns, columns]: M; weights W are rounded as if they were W + W M, which errors are then
     * relative to. NULL: 0.
     */
    const double *correction;

    ft_groupwise_round_fn round; /* NULL: round to nearest */
    const void *user;            /* of `round` */

    /*
     * [columns, columns], symmetric: second moments of the inputs, from which output errors are
     * computed. NULL: from `importance` alone, or not at all.
     */
    const double *moments;
};

/* Some rows of a matrix, their grids and their quantized values. */
struct ft_groupwise_panel {
    size_t rows, cols;       /* at most FT_PANEL_ROWS rows */
    float *weight;           /* [rows, cols] */
    ft_groupwise_grid *grid; /* [rows, groups] */
    uint8_t *q;              /* [rows, cols] */
    double *scratch;         /* [2, FT_PANEL_ROWS, cols]: scratch of `round` */
};

/* Groups per row. */
static inline size_t ft_groupwise_options_groups(const ft_groupwise_options *options, size_t cols)
{
    return ft_groupwise_groups(&(ft_groupwise){ .group = options->group }, cols);
}

/* Columns of the group that starts at column `first`. */
static inline size_t ft_groupwise_group_cols(const ft_groupwise_options *options, size_t cols,
                                             size_t first)
{
    size_t group = (size_t) options->group, left = cols - first;
    return group == 0 || group > left ? left : group;
}

/*
 * Chooses the grid for n neighbouring weights of a row, all finite, with magnitudes up to 65504 *
 * 7; `importance` is that of these columns, or NULL.
 *
 * Symmetric: the extreme of the group is +-7 or +-127 steps from zero. If it is negative, a grid in
 * which it is -8 or -128 has steps finer by an eighth, but ends earlier on the other side; it is
 * used if the sum of squared errors is smaller. Asymmetric: from the lowest to the highest weight,
 * extended to include 0, which is always on the grid. With `clip` the same is tried for ranges of
 * 0.975, 0.95 ... 0.4 of that, and for each asymmetric one also with the two zero points next to
 * its own; the smallest error wins, ties go to the widest range. A group of zeros has scale 1.
 */
ft_groupwise_grid ft_groupwise_choose_grid(const float *weight, size_t n, const float *importance,
                                           const ft_groupwise_options *options);

/* Rounds to the nearest integer, half to even; magnitudes up to 2^22. */
static inline float ft_round_half_even(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it discards the fraction */
    return (x + magic) - magic;
}

/* The nearest quantized value; ties go to the one at an even distance from the zero point. */
static inline uint8_t ft_groupwise_round_nearest(const ft_groupwise_grid *grid, float weight)
{
    float low = (float) -grid->zero, high = (float) (grid->max_q - grid->zero);
    float q = weight * grid->inverse;
    q = q < high ? q : high;
    q = q > low ? q : low;
    return (uint8_t) ((int32_t) ft_round_half_even(q) + grid->zero);
}

static inline float ft_groupwise_dequantize(const ft_groupwise_grid *grid, uint8_t q)
{
    return grid->scale * (float) (q - grid->zero);
}

/* Chooses grids and rounds the weights. */
void ft_groupwise_quantize(ft_groupwise_panel *panel, const ft_groupwise_options *options);

/*
 * Stores panel number `index` of a matrix of `rows` rows. Padding becomes 0.
 *
 *   q      [ft_panel_bytes(32, cols, bits)] of this panel alone
 *   scale  of the entire matrix, as in ft_groupwise; so `zero`, NULL for symmetric grids
 */
void ft_groupwise_store_panel(uint32_t *q_words, uint16_t *scale, uint8_t *zero, size_t index,
                              size_t rows, const ft_groupwise_panel *panel,
                              const ft_groupwise_options *options);

#endif
