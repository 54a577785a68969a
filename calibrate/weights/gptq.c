/*
 * gptq.c - GPTQ: rounds the columns of a row so that later columns compensate the errors of earlier
 * ones.
 *
 * U is computed without inverting H. Let A be H with its columns in reverse order, and A = L L^T.
 * Then L read backwards is an upper triangle R with H = R R^T, and U = R^-1: L^-1 read backwards.
 *
 * Columns are rounded in blocks. At the end of a block, one GEMM subtracts its errors from the
 * columns after it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/gptq.h"

#include "kernels/blas.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCH = 128, SWEEPS = 4 };

/* ---- Rounding order ----------------------------------------------------------------------- */

typedef struct rank {
    double square;
    size_t col;
} rank;

/* Descending; ties in column order. */
static int compare_ranks(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->square != y->square)
        return x->square > y->square ? -1 : 1;
    return x->col < y->col ? -1 : 1;
}

static ft_status find_order(ft_gptq *g, const double *moments, ft_error *err)
{
    rank *ranks = ft_array(g->cols, sizeof *ranks);
    if (ranks == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to order %zu columns", g->cols);
    for (size_t i = 0; i < g->cols; i++)
        ranks[i] = (rank){ moments[i * g->cols + i], i };
    qsort(ranks, g->cols, sizeof *ranks, compare_ranks);
    for (size_t i = 0; i < g->cols; i++) {
        g->order[i] = ranks[i].col;
        g->dead += ranks[i].square > 0.0 ? 0 : 1;
    }
    free(ranks);
    return FT_OK;
}

/* ---- Cholesky factor ---------------------------------------------------------------------- */

/* A hundredth of the mean of the diagonal, without the dead columns. */
static double damping(const ft_gptq *g, const double *moments)
{
    double sum = 0.0;
    size_t live = g->cols - g->dead;
    for (size_t i = 0; i < live; i++)
        sum += moments[g->order[i] * g->cols + g->order[i]];
    return live > 0 ? 0.01 * sum / (double) live : 0.0;
}

/* H in reverse rounding order, damped. */
static void fill(double *a, const ft_gptq *g, const double *moments)
{
    size_t n = g->cols;
    double dead = g->damping > 0.0 ? 100.0 * g->damping : 1.0;
    for (size_t i = 0; i < n; i++) {
        const double *row = moments + g->order[n - 1 - i] * n;
        for (size_t k = 0; k < n; k++)
            a[i * n + k] = row[g->order[n - 1 - k]];
        a[i * n + i] += g->damping + (i < g->dead ? dead : 0.0);
    }
}

/* `a` is the lower triangle in Fortran order, so it is U when read from its end. */
static void read_backwards(ft_gptq *g, const double *a)
{
    size_t n = g->cols;
    for (size_t row = 0; row < n; row++)
        for (size_t col = row; col < n; col++)
            g->upper[row * n + col] = (float) a[(n - 1 - col) * n + (n - 1 - row)];
}

static ft_status factorize(ft_gptq *g, const double *moments, const char *name, ft_error *err)
{
    double *a = ft_array(g->cols * g->cols, sizeof *a);
    int n = (int) g->cols, bad = 0;
    if (a == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %d x %d sums", name, n, n);
    fill(a, g, moments);
    bad = ft_inverse_cholesky(a, n);
    for (int i = 0; i < n && bad == 0; i++) /* NaN passes through both routines */
        bad = isfinite(a[(size_t) i * g->cols + (size_t) i]) ? 0 : i + 1;
    if (bad == 0)
        read_backwards(g, a);
    free(a);
    return bad == 0 ? FT_OK
                    : ft_fail(err, FT_EFORMAT,
                              "%s: the sums of its inputs are not those of a square", name);
}

ft_status ft_gptq_init(ft_gptq *g, const double *moments, size_t cols, const char *name,
                       ft_error *err)
{
    *g = (ft_gptq){ .cols = cols, .sweeps = SWEEPS, .moments = moments };
    g->order = ft_array(cols, sizeof *g->order);
    g->upper = ft_array(cols * cols, sizeof *g->upper);
    if (g->order == NULL || g->upper == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu x %zu sums", name, cols, cols);
    FT_TRY(ft_blas_load(1, err));
    FT_TRY(find_order(g, moments, err));
    g->damping = damping(g, moments);
    return factorize(g, moments, name, err);
}

void ft_gptq_fini(ft_gptq *g)
{
    free(g->order);
    free(g->upper);
    *g = (ft_gptq){ 0 };
}

/* ---- Rounding ----------------------------------------------------------------------------- */

/* A panel with its columns in rounding order, updated as columns are rounded, and the errors. */
typedef struct work {
    const ft_gptq *g;
    const ft_blocks_how *how;
    ft_blocks_panel *panel;
    float *weight; /* [rows, cols] */
    float error[FT_PANEL_ROWS * STRETCH];
} work;

static void reorder(work *w)
{
    size_t cols = w->panel->cols, live = cols - w->g->dead;
    for (size_t row = 0; row < w->panel->rows; row++)
        for (size_t i = 0; i < cols; i++)
            w->weight[row * cols + i] =
                i < live ? w->panel->weight[row * cols + w->g->order[i]] : 0.0f;
}

static const ft_blocks_grid *grid_of(const ft_blocks_panel *panel, const ft_blocks_how *how,
                                     size_t row, size_t col)
{
    size_t group = how->group == 0 ? 0 : col / (size_t) how->group;
    return &panel->grid[row * ft_blocks_how_groups(how, panel->cols) + group];
}

/* Rounds column number `at` of the order, and compensates its error in the columns up to `end`. */
static void round_column(work *w, size_t first, size_t at, size_t end)
{
    const ft_blocks_panel *p = w->panel;
    const float *upper = w->g->upper + at * p->cols;
    size_t col = w->g->order[at];
    for (size_t row = 0; row < p->rows; row++) {
        float *weight = w->weight + row * p->cols;
        const ft_blocks_grid *grid = grid_of(p, w->how, row, col);
        uint8_t code = ft_blocks_nearest(grid, weight[at]);
        float error = (weight[at] - ft_blocks_real(grid, code)) / upper[at];
        p->code[row * p->cols + col] = code;
        w->error[row * STRETCH + (at - first)] = error;
        for (size_t i = at + 1; i < end; i++)
            weight[i] -= error * upper[i];
    }
}

/* Compensates the errors of a block in the columns after it. */
static void settle(work *w, size_t first, size_t end)
{
    size_t cols = w->panel->cols;
    if (end == cols)
        return;
    ft_sgemm(CblasNoTrans, CblasNoTrans, (int) w->panel->rows, (int) (cols - end),
             (int) (end - first), -1.0f, w->error, STRETCH, w->g->upper + first * cols + end,
             (int) cols, 1.0f, w->weight + end, (int) cols);
}

static void round_in_order(const ft_gptq *g, ft_blocks_panel *panel, const ft_blocks_how *how)
{
    work w = { .g = g, .how = how, .panel = panel, .weight = (void *) panel->work };
    reorder(&w);
    for (size_t first = 0, end; first < panel->cols; first = end) {
        end = first + ft_min_size(STRETCH, panel->cols - first);
        for (size_t at = first; at < end; at++)
            round_column(&w, first, at, end);
        settle(&w, first, end);
    }
}

/* ---- Coordinate descent ------------------------------------------------------------------- */

/* Half the decrease of a row's error per unit of each value: (w - q) H; [rows, cols]. */
static double *find_slopes(const ft_gptq *g, const ft_blocks_panel *panel, const ft_blocks_how *how)
{
    size_t cols = panel->cols, elements = panel->rows * cols;
    double *error = panel->work, *slope = error + FT_PANEL_ROWS * cols;
    for (size_t i = 0; i < elements; i++)
        error[i] = (double) panel->weight[i] -
                   (double) ft_blocks_real(grid_of(panel, how, i / cols, i % cols), panel->code[i]);
    memcpy(slope, error, elements * sizeof *slope);
    ft_dsymm(CblasRight, CblasUpper, (int) panel->rows, (int) cols, 1.0, g->moments, (int) cols,
             error, (int) cols, g->damping, slope, (int) cols);
    return slope;
}

/*
 * Sets one value to its optimum with the others fixed. An improvement within rounding error does
 * not count: so values that are already optimal stay, also if two are equally good.
 */
static bool improve(const ft_gptq *g, const ft_blocks_grid *grid, uint8_t *code, double *slope,
                    size_t col)
{
    double square = g->moments[col * g->cols + col] + g->damping;
    double value = (double) ft_blocks_real(grid, *code);
    uint8_t better = ft_blocks_nearest(grid, (float) (value + slope[col] / square));
    double change = (double) ft_blocks_real(grid, better) - value;
    if (better == *code || 2.0 * change * slope[col] <= change * change * square * (1.0 + 1e-6))
        return false;
    const double *moments = g->moments + col * g->cols;
    for (size_t i = 0; i < g->cols; i++)
        slope[i] -= change * moments[i];
    slope[col] -= change * g->damping;
    *code = better;
    return true;
}

static void descend(const ft_gptq *g, ft_blocks_panel *panel, const ft_blocks_how *how)
{
    double *slope = find_slopes(g, panel, how);
    bool changed = true;
    for (int sweep = 0; sweep < g->sweeps && changed; sweep++) {
        changed = false;
        for (size_t at = 0; at < panel->cols - g->dead; at++)
            for (size_t row = 0, col = g->order[at]; row < panel->rows; row++)
                changed |=
                    improve(g, grid_of(panel, how, row, col), &panel->code[row * panel->cols + col],
                            slope + row * panel->cols, col);
    }
}

void ft_gptq_round(const void *user, ft_blocks_panel *panel, const ft_blocks_how *how)
{
    const ft_gptq *g = user;
    round_in_order(g, panel, how);
    if (g->sweeps > 0)
        descend(g, panel, how);
}
