/*
 * gptq.c - GPTQ: rounds the columns of a row so that later columns compensate the errors of earlier
 * ones.
 *
 * U is computed without inverting H. Let A be H with its columns in reverse order, and A = R^T R
 * with an upper triangle R. Read backwards, R^T is an upper triangle whose product with its
 * transpose is H; so R^-1 read backwards is U.
 *
 * Columns are rounded in blocks. At the end of a block, one GEMM subtracts its errors from the
 * columns after it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/gptq.h"

#include "calibrate/weights/group_descent.h"
#include "kernels/half.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DAMPING 0.01

enum { COL_BLOCK = 128, MAX_SWEEPS = 8, GROUP_SWEEPS = 4 };

/* ---- Rounding order ----------------------------------------------------------------------- */

typedef struct ranked_col {
    double square;
    size_t col;
} ranked_col;

/* Descending; ties in column order. */
static int compare_ranked(const void *a, const void *b)
{
    const ranked_col *x = a, *y = b;
    if (x->square != y->square)
        return x->square > y->square ? -1 : 1;
    return x->col < y->col ? -1 : 1;
}

static ft_status compute_order(ft_gptq *g, const double *moments, ft_error *err)
{
    ranked_col *ranked = ft_calloc(g->cols, sizeof *ranked);
    if (ranked == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to order %zu columns", g->cols);
    for (size_t i = 0; i < g->cols; i++)
        ranked[i] = (ranked_col){ moments[i * g->cols + i], i };
    qsort(ranked, g->cols, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < g->cols; i++) {
        g->order[i] = ranked[i].col;
        g->n_dead += ranked[i].square > 0.0 ? 0 : 1;
    }
    free(ranked);
    return FT_OK;
}

/* ---- Cholesky factor ---------------------------------------------------------------------- */

/* A share of the mean of the diagonal, without the dead columns. */
static double damping(const ft_gptq *g, const double *moments)
{
    double sum = 0.0;
    size_t n_live = g->cols - g->n_dead;
    for (size_t i = 0; i < n_live; i++)
        sum += moments[g->order[i] * g->cols + g->order[i]];
    return n_live > 0 ? DAMPING * sum / (double) n_live : 0.0;
}

/* H in reverse rounding order, damped. */
static void fill_hessian(double *a, const ft_gptq *g, const double *moments)
{
    size_t n = g->cols;
    double dead_diagonal = g->damping > 0.0 ? g->damping : 1.0;
    for (size_t i = 0; i < n; i++) {
        const double *row = moments + g->order[n - 1 - i] * n;
        for (size_t k = 0; k < n; k++)
            a[i * n + k] = row[g->order[n - 1 - k]];
        a[i * n + i] += g->damping + (i < g->n_dead ? dead_diagonal : 0.0);
    }
}

/* R^-1, an upper triangle in reverse rounding order, is U when read from its end. */
static void store_upper(ft_gptq *g, const double *a)
{
    size_t n = g->cols;
    for (size_t row = 0; row < n; row++)
        for (size_t col = row; col < n; col++)
            g->upper[row * g->stride + col] = (float) a[(n - 1 - col) * n + (n - 1 - row)];
}

static ft_status factorize(ft_gptq *g, const double *moments, const char *name, ft_error *err)
{
    double *a = ft_calloc(g->cols * g->cols, sizeof *a);
    if (a == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu x %zu sums", name, g->cols, g->cols);
    fill_hessian(a, g, moments);
    ft_status status = ft_linalg_cholesky_inverse(&g->linalg, a, g->cols, err);
    if (status == FT_OK)
        store_upper(g, a);
    free(a);
    return status == FT_EFORMAT
               ? ft_fail(err, status, "%s: the sums of its inputs are not those of a square", name)
               : status;
}

ft_status ft_gptq_init(ft_gptq *g, const double *moments, size_t cols, int threads,
                       const char *name, ft_error *err)
{
    *g = (ft_gptq){ .cols = cols,
                    .stride = ft_round_up(cols, FT_LINALG_SGEMM_UNIT),
                    .sweeps = MAX_SWEEPS,
                    .group_sweeps = GROUP_SWEEPS,
                    .moments = moments };
    g->order = ft_calloc(cols, sizeof *g->order);
    g->upper = ft_calloc(cols * g->stride, sizeof *g->upper);
    if (g->order == NULL || g->upper == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu x %zu sums", name, cols, cols);
    FT_TRY(ft_linalg_init(&g->linalg, threads, err));
    FT_TRY(compute_order(g, moments, err));
    g->damping = damping(g, moments);
    FT_TRY(factorize(g, moments, name, err));
    g->linalg.threads = 1; /* from here on, each panel has its own thread */
    return FT_OK;
}

void ft_gptq_fini(ft_gptq *g)
{
    free(g->order);
    free(g->upper);
    *g = (ft_gptq){ 0 };
}

/* ---- Rounding ----------------------------------------------------------------------------- */

/* A panel with its columns in rounding order, updated as columns are rounded, and the errors. */
typedef struct round_state {
    const ft_gptq *g;
    const ft_groupwise_options *options;
    ft_groupwise_panel *panel;
    float *weight; /* [rows, stride of g] */
    float error[FT_PANEL_ROWS * COL_BLOCK];
} round_state;

static void gather_columns(round_state *w)
{
    size_t cols = w->panel->cols, n_live = cols - w->g->n_dead;
    for (size_t row = 0; row < w->panel->rows; row++)
        for (size_t i = 0; i < w->g->stride; i++)
            w->weight[row * w->g->stride + i] =
                i < n_live ? w->panel->weight[row * cols + w->g->order[i]] : 0.0f;
}

static ft_groupwise_grid *grid_of(const ft_groupwise_panel *panel,
                                  const ft_groupwise_options *options, size_t row, size_t col)
{
    size_t group = options->group == 0 ? 0 : col / (size_t) options->group;
    return &panel->grid[row * ft_groupwise_options_groups(options, panel->cols) + group];
}

/* Rounds column number `at` of the order, and compensates its error in the columns up to `end`. */
static void round_column(round_state *w, size_t first, size_t at, size_t end)
{
    const ft_groupwise_panel *p = w->panel;
    const float *upper = w->g->upper + at * w->g->stride;
    size_t col = w->g->order[at];
    for (size_t row = 0; row < p->rows; row++) {
        float *weight = w->weight + row * w->g->stride;
        const ft_groupwise_grid *grid = grid_of(p, w->options, row, col);
        uint8_t code = ft_groupwise_round_nearest(grid, weight[at]);
        float error = (weight[at] - ft_groupwise_dequantize(grid, code)) / upper[at];
        p->q[row * p->cols + col] = code;
        w->error[row * COL_BLOCK + (at - first)] = error;
        for (size_t i = at + 1; i < end; i++)
            weight[i] -= error * upper[i];
    }
}

/* Compensates the errors of a block in the columns after it. */
static void update_trailing(round_state *w, size_t first, size_t end)
{
    size_t stride = w->g->stride;
    if (end == w->panel->cols)
        return;
    ft_linalg_sgemm_subtract(&w->g->linalg, &(ft_sgemm){ .m = w->panel->rows,
                                                         .n = stride - end,
                                                         .k = end - first,
                                                         .a = w->error,
                                                         .a_stride = COL_BLOCK,
                                                         .b = w->g->upper + first * stride + end,
                                                         .b_stride = stride,
                                                         .c = w->weight + end,
                                                         .c_stride = stride });
}

static void round_columns(const ft_gptq *g, ft_groupwise_panel *panel,
                          const ft_groupwise_options *options)
{
    round_state w = {
        .g = g, .options = options, .panel = panel, .weight = (void *) panel->scratch
    };
    gather_columns(&w);
    for (size_t first = 0, end; first < panel->cols; first = end) {
        end = first + ft_min_size(COL_BLOCK, panel->cols - first);
        for (size_t at = first; at < end; at++)
            round_column(&w, first, at, end);
        update_trailing(&w, first, end);
    }
}

/* ---- Coordinate descent ------------------------------------------------------------------- */

/* Half the decrease of a row's error per unit of each value: (w - q) H; [rows, cols]. */
static double *compute_gradient(const ft_gptq *g, const ft_groupwise_panel *panel,
                                const ft_groupwise_options *options)
{
    size_t cols = panel->cols, elements = panel->rows * cols;
    double *error = panel->scratch, *gradient = error + FT_PANEL_ROWS * cols;
    for (size_t i = 0; i < elements; i++)
        error[i] = (double) panel->weight[i] -
                   (double) ft_groupwise_dequantize(grid_of(panel, options, i / cols, i % cols),
                                                    panel->q[i]);
    for (size_t i = 0; i < elements; i++)
        gradient[i] = g->damping * error[i];
    ft_linalg_dgemm(&g->linalg,
                    &(ft_dgemm){ .m = panel->rows,
                                 .n = cols,
                                 .k = cols,
                                 .a = { .f64 = error, .row_stride = cols, .col_stride = 1 },
                                 .b = { .f64 = g->moments, .row_stride = cols, .col_stride = 1 },
                                 .c = gradient,
                                 .c_stride = cols });
    return gradient;
}

/*
 * Sets one value to its optimum with the others fixed. An improvement within rounding error does
 * not count: so values that are already optimal stay, also if two are equally good.
 */
static bool update_value(const ft_gptq *g, const ft_groupwise_grid *grid, uint8_t *code,
                         double *gradient, size_t col)
{
    double square = g->moments[col * g->cols + col] + g->damping;
    double value = (double) ft_groupwise_dequantize(grid, *code);
    uint8_t best = ft_groupwise_round_nearest(grid, (float) (value + gradient[col] / square));
    double change = (double) ft_groupwise_dequantize(grid, best) - value;
    if (best == *code || 2.0 * change * gradient[col] <= change * change * square * (1.0 + 1e-6))
        return false;
    const double *moments = g->moments + col * g->cols;
    for (size_t i = 0; i < g->cols; i++)
        gradient[i] -= change * moments[i];
    gradient[col] -= change * g->damping;
    *code = best;
    return true;
}

/* A group of a row: `count` values, of columns first .. */
typedef struct group_values {
    const uint8_t *q;
    size_t first, count;
    int32_t zero;
} group_values;

/* k H k^T of the damped H, where k are the values of a group less their zero point. */
static double group_square(const ft_gptq *g, const group_values *v)
{
    double sum = 0.0;
    for (size_t i = 0; i < v->count; i++) {
        const double *moments = g->moments + (v->first + i) * g->cols + v->first;
        double k = (double) (v->q[i] - v->zero), product = g->damping * k;
        for (size_t j = 0; j < v->count; j++)
            product += moments[j] * (double) (v->q[j] - v->zero);
        sum += k * product;
    }
    return sum;
}

/* Subtracts what a change of the scale of a group adds to the gradient. */
static void subtract_group(const ft_gptq *g, double *gradient, const group_values *v, double change)
{
    for (size_t i = 0; i < v->count; i++) {
        const double *moments = g->moments + (v->first + i) * g->cols;
        double step = change * (double) (v->q[i] - v->zero);
        for (size_t j = 0; j < g->cols && step != 0.0; j++)
            gradient[j] -= step * moments[j];
        gradient[v->first + i] -= step * g->damping;
    }
}

/* Sets the scale of a group to its optimum with all values fixed, if float16 has a better one. */
static bool update_scale(const ft_gptq *g, ft_groupwise_grid *grid, const group_values *v,
                         double *gradient)
{
    double square = group_square(g, v), slope = 0.0;
    for (size_t i = 0; i < v->count; i++)
        slope += gradient[v->first + i] * (double) (v->q[i] - v->zero);
    if (!(square > 0.0))
        return false;
    double old = (double) grid->scale, wanted = old + slope / square;
    if (!(wanted > 0.5 * old && wanted < 2.0 * old))
        return false;
    float scale = ft_float_from_f16(ft_f16_from_float((float) wanted));
    double change = (double) scale - old;
    if (!(scale > 0.0f && isfinite(scale)) ||
        2.0 * change * slope <= change * change * square * (1.0 + 1e-6))
        return false;
    subtract_group(g, gradient, v, change);
    grid->scale = scale;
    grid->inverse = 1.0f / scale;
    return true;
}

static bool sweep_values(const ft_gptq *g, ft_groupwise_panel *panel,
                         const ft_groupwise_options *options, double *gradient)
{
    bool changed = false;
    for (size_t at = 0; at < panel->cols - g->n_dead; at++)
        for (size_t row = 0, col = g->order[at]; row < panel->rows; row++)
            changed |=
                update_value(g, grid_of(panel, options, row, col),
                             &panel->q[row * panel->cols + col], gradient + row * panel->cols, col);
    return changed;
}

static bool sweep_scales(const ft_gptq *g, ft_groupwise_panel *panel,
                         const ft_groupwise_options *options, double *gradient)
{
    bool changed = false;
    size_t cols = panel->cols;
    for (size_t first = 0, n; first < cols; first += n) {
        n = ft_groupwise_group_cols(options, cols, first);
        for (size_t row = 0; row < panel->rows; row++) {
            ft_groupwise_grid *grid = grid_of(panel, options, row, first);
            group_values values = { panel->q + row * cols + first, first, n, grid->zero };
            changed |= update_scale(g, grid, &values, gradient + row * cols);
        }
    }
    return changed;
}

/* Values are also swept after the last scales, which they were not chosen for. */
static void sweep_values_and_scales(const ft_gptq *g, ft_groupwise_panel *panel,
                                    const ft_groupwise_options *options, double *gradient)
{
    bool changed = true;
    for (int sweep = 0; sweep < g->sweeps && changed; sweep++) {
        changed = sweep_values(g, panel, options, gradient);
        if (sweep + 1 < g->sweeps)
            changed |= sweep_scales(g, panel, options, gradient);
    }
}

/* Groups come last: they leave the minima where no single value or scale can improve. */
static void coordinate_descent(const ft_gptq *g, ft_groupwise_panel *panel,
                               const ft_groupwise_options *options)
{
    double *gradient = compute_gradient(g, panel, options);
    bool changed = true;
    sweep_values_and_scales(g, panel, options, gradient);
    for (int sweep = 0; sweep < g->group_sweeps && changed; sweep++) {
        changed = ft_group_descent_sweep(g, panel, options, gradient);
        sweep_values_and_scales(g, panel, options, gradient);
    }
}

void ft_gptq_round(const void *user, ft_groupwise_panel *panel, const ft_groupwise_options *options)
{
    const ft_gptq *g = user;
    round_columns(g, panel, options);
    if (g->sweeps > 0)
        coordinate_descent(g, panel, options);
}
