/*
 * group_descent.c - coordinate descent whose coordinates are whole groups: all values of a group,
 * its scale and its zero point change together.
 *
 * Columns with small inputs come first in L, so those with large inputs are rounded first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/group_descent.h"

#include "kernels/half.h"

#include <math.h>
#include <string.h>

/* An improvement must exceed what rounding of the sums can cause. */
#define MARGIN (1.0 - 1e-6)

/* The live columns of a group of all rows. */
typedef struct group_problem {
    const ft_gptq *g;
    size_t first, cols; /* all columns of the group */
    size_t count;       /* live ones */
    size_t col[FT_GROUP_DESCENT_COLS];
    double lower[FT_GROUP_DESCENT_COLS][FT_GROUP_DESCENT_COLS]; /* L, in the order of `col` */
} group_problem;

/* Values of a group, less its zero point, on a grid. */
typedef struct group_values {
    ft_groupwise_grid grid;
    double error;
    double k[FT_GROUP_DESCENT_COLS];
} group_values;

/* ---- The factor --------------------------------------------------------------------------- */

static double diagonal(const ft_gptq *g, size_t col)
{
    return g->moments[col * g->cols + col];
}

/* Inserts the live columns in ascending order of their inputs; equal ones in column order. */
static void sort_columns(group_problem *p)
{
    p->count = 0;
    for (size_t col = p->first; col < p->first + p->cols; col++) {
        size_t at = p->count;
        if (!(diagonal(p->g, col) > 0.0))
            continue;
        for (; at > 0 && diagonal(p->g, p->col[at - 1]) > diagonal(p->g, col); at--)
            p->col[at] = p->col[at - 1];
        p->col[at] = col;
        p->count++;
    }
}

/* L by rows. The whole damped H has passed a factorization, and so do its diagonal blocks. */
static void factorize(group_problem *p)
{
    const ft_gptq *g = p->g;
    for (size_t i = 0; i < p->count; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = g->moments[p->col[i] * g->cols + p->col[j]] + (i == j ? g->damping : 0.0);
            for (size_t k = 0; k < j; k++)
                sum -= p->lower[i][k] * p->lower[j][k];
            p->lower[i][j] = i == j ? sqrt(sum) : sum / p->lower[j][j];
        }
}

/* ---- One group of one row ----------------------------------------------------------------- */

/* y, and the error of the present values: |c|^2. */
static void find_target(double *y, group_values *present, const group_problem *p,
                        const double *gradient)
{
    double c[FT_GROUP_DESCENT_COLS];
    present->error = 0.0;
    for (size_t i = 0; i < p->count; i++) {
        double sum = gradient[p->col[i]];
        for (size_t j = 0; j < i; j++)
            sum -= p->lower[i][j] * c[j];
        c[i] = sum / p->lower[i][i];
        y[i] = c[i];
        present->error += c[i] * c[i];
    }
    for (size_t i = 0; i < p->count; i++) {
        double value = present->k[i] * (double) present->grid.scale;
        for (size_t j = 0; j <= i && present->k[i] != 0.0; j++)
            y[j] += value * p->lower[i][j];
    }
}

/* Rounds to the nearest integer on the grid, less the zero point. */
static double round_on_grid(const ft_groupwise_grid *grid, double value)
{
    uint8_t code = ft_groupwise_round_nearest(grid, (float) value);
    return (double) (code - grid->zero);
}

/* The nearest-plane algorithm on a grid; whether the error stays below that of `best`. */
static bool find_values(group_values *out, const group_problem *p, const double *y,
                        const ft_groupwise_grid *grid, double best)
{
    double left[FT_GROUP_DESCENT_COLS];
    memcpy(left, y, p->count * sizeof *left);
    out->grid = *grid;
    out->error = 0.0;
    for (size_t i = p->count; i-- > 0;) {
        const double *lower = p->lower[i];
        out->k[i] = round_on_grid(grid, left[i] / lower[i]);
        double value = out->k[i] * (double) grid->scale;
        for (size_t j = 0; j <= i; j++)
            left[j] -= value * lower[j];
        out->error += left[i] * left[i];
        if (!(out->error < best))
            return false;
    }
    return true;
}

static void try_scale(group_values *best, const group_problem *p, const double *y,
                      const ft_groupwise_grid *present, float scale, int32_t max_shift)
{
    for (int32_t shift = -max_shift; shift <= max_shift; shift++) {
        ft_groupwise_grid grid = { .scale = scale,
                                   .inverse = 1.0f / scale,
                                   .zero = present->zero + shift,
                                   .max_q = present->max_q };
        group_values found;
        if (grid.zero >= 0 && grid.zero <= grid.max_q &&
            find_values(&found, p, y, &grid, best->error * MARGIN))
            *best = found;
    }
}

static group_values search(const group_problem *p, const double *y, const group_values *present,
                           const ft_groupwise_options *options)
{
    static const float ratio[] = { 1.0f, 0.975f, 1.025f, 0.95f, 1.05f, 0.90f, 1.10f, 0.85f, 1.20f };
    group_values best = *present;
    for (size_t i = 0; i < sizeof ratio / sizeof ratio[0]; i++) {
        float scale = ft_float_from_f16(ft_f16_from_float(present->grid.scale * ratio[i]));
        if (scale > 0.0f && isfinite(scale))
            try_scale(&best, p, y, &present->grid, scale, options->asymmetric ? 1 : 0);
    }
    return best;
}

/* Replaces the values of a group, and subtracts what that adds to the gradient. */
static void replace(const group_problem *p, ft_groupwise_grid *grid, uint8_t *q, double *gradient,
                    const group_values *from, const group_values *to)
{
    const ft_gptq *g = p->g;
    *grid = to->grid;
    memset(q + p->first, (int) to->grid.zero, p->cols);
    for (size_t i = 0; i < p->count; i++) {
        size_t col = p->col[i];
        const double *moments = g->moments + col * g->cols;
        double change = to->k[i] * (double) to->grid.scale - from->k[i] * (double) from->grid.scale;
        q[col] = (uint8_t) ((int32_t) to->k[i] + to->grid.zero);
        for (size_t j = 0; j < g->cols && change != 0.0; j++)
            gradient[j] -= change * moments[j];
        gradient[col] -= change * g->damping;
    }
}

static bool update_group(const group_problem *p, ft_groupwise_grid *grid, uint8_t *q,
                         double *gradient, const ft_groupwise_options *options)
{
    double y[FT_GROUP_DESCENT_COLS];
    group_values present = { .grid = *grid };
    for (size_t i = 0; i < p->count; i++)
        present.k[i] = (double) (q[p->col[i]] - grid->zero);
    find_target(y, &present, p, gradient);
    group_values best = search(p, y, &present, options);
    if (!(best.error < present.error))
        return false;
    replace(p, grid, q, gradient, &present, &best);
    return true;
}

bool ft_group_descent_sweep(const ft_gptq *g, ft_groupwise_panel *panel,
                            const ft_groupwise_options *options, double *gradient)
{
    size_t cols = panel->cols, groups = ft_groupwise_options_groups(options, cols);
    bool changed = false;
    group_problem p;
    for (size_t first = 0, group = 0, n; first < cols; first += n, group++) {
        n = ft_groupwise_group_cols(options, cols, first);
        if (n > FT_GROUP_DESCENT_COLS)
            continue;
        p.g = g;
        p.first = first;
        p.cols = n;
        sort_columns(&p);
        factorize(&p);
        for (size_t row = 0; row < panel->rows; row++)
            changed |= update_group(&p, &panel->grid[row * groups + group], panel->q + row * cols,
                                    gradient + row * cols, options);
    }
    return changed;
}
