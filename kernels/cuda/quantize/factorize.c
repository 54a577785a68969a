/*
 * factorize.c - completes the sums of an input, and prepares for the matrices that read it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/quantize/quantizer.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* Shares of the mean of the diagonal, as in gptq.c and correction.c of calibrate/weights/. */
#define ROUND_DAMPING 0.01
#define CORRECTION_DAMPING 0.1

/* ---- Rounding order ----------------------------------------------------------------------- */

typedef struct ranked_col {
    double square;
    uint32_t col;
} ranked_col;

/* Descending; ties in column order. */
static int compare_ranked(const void *a, const void *b)
{
    const ranked_col *x = a, *y = b;
    if (x->square > y->square || x->square < y->square)
        return x->square > y->square ? -1 : 1;
    return x->col < y->col ? -1 : 1;
}

/* Sorts the columns, and finds the damping of those that are not dead. */
static void rank_columns(ft_quantizer *q, ranked_col *ranked, uint32_t *order)
{
    double sum = 0.0;
    size_t n_live = 0;
    for (size_t i = 0; i < q->cols; i++)
        ranked[i] = (ranked_col){ q->square[i], (uint32_t) i };
    qsort(ranked, q->cols, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < q->cols; i++) {
        order[i] = ranked[i].col;
        n_live += ranked[i].square > 0.0;
        sum += ranked[i].square;
    }
    q->n_dead = q->cols - n_live;
    q->damping = n_live > 0 ? ROUND_DAMPING * sum / (double) n_live : 0.0;
}

static ft_status choose_order(ft_quantizer *q, const char *name, ft_error *err)
{
    ranked_col *ranked = ft_calloc(q->cols, sizeof *ranked);
    uint32_t *order = ft_calloc(q->cols, sizeof *order);
    ft_status status =
        ranked != NULL && order != NULL
            ? ft_quantizer_reserve(q, &q->order, q->cols * sizeof *order, err)
            : ft_fail(err, FT_ENOMEM, "%s: no memory to order %zu columns", name, q->cols);
    if (status == FT_OK) {
        rank_columns(q, ranked, order);
        status = ft_quantizer_upload(q, q->order.data, order, q->cols * sizeof *order, err);
    }
    free(ranked);
    free(order);
    return status;
}

/* ---- Factors ------------------------------------------------------------------------------ */

static ft_status finish_sums(ft_quantizer *q, ft_error *err)
{
    size_t elements = q->cols * q->cols;
    FT_QUANTIZER_LAUNCH(q, finish_moments, elements, err, .moments = q->moments.data,
                        .cols = q->cols, .unit = q->unit,
                        .square = ft_quantizer_columns_of(q).square);
    if (q->has_cross)
        FT_QUANTIZER_LAUNCH(q, finish_cross, elements, err, .cross = q->cross.data,
                            .unit = q->unit);
    return FT_OK;
}

/* The sums of x' x become M: their product with the inverse of the damped moments. */
static ft_status solve_correction(ft_quantizer *q, ft_error *err)
{
    size_t n = q->cols;
    double sum = 0.0, *factor = q->upper.data;
    for (size_t i = 0; i < n; i++)
        sum += q->square[i];
    FT_QUANTIZER_LAUNCH(q, damp_moments, n * n, err, .moments = q->moments.data, .n = n,
                        .added = sum > 0.0 ? CORRECTION_DAMPING * sum / (double) n : 1.0,
                        .out = factor);
    FT_TRY(ft_quantizer_cholesky(q, factor, n, err));
    FT_TRY(ft_quantizer_solve(q, factor, n, q->cross.data, n, false, err));
    return ft_quantizer_solve(q, factor, n, q->cross.data, n, true, err);
}

/* The inverse of the Cholesky factor of H in reverse rounding order, read from its end, is U. */
static ft_status find_upper(ft_quantizer *q, ft_error *err)
{
    size_t n = q->cols;
    FT_QUANTIZER_LAUNCH(q, order_hessian, n * n, err, .moments = q->moments.data,
                        .order = q->order.data, .n = n, .n_dead = q->n_dead, .damping = q->damping,
                        .dead_diagonal = q->damping > 0.0 ? q->damping : 1.0, .out = q->upper.data);
    FT_TRY(ft_quantizer_cholesky(q, q->upper.data, n, err));
    FT_QUANTIZER_LAUNCH(q, set_identity, n * n, err, .n = n, .out = q->inverse.data);
    FT_TRY(ft_quantizer_solve(q, q->upper.data, n, q->inverse.data, n, false, err));
    FT_QUANTIZER_LAUNCH(q, store_upper, n * n, err, .inverse = q->inverse.data, .n = n,
                        .out = q->upper.data);
    return FT_OK;
}

ft_status ft_quantizer_factorize(ft_quantizer *q, const char *name, ft_error *err)
{
    size_t bytes = q->cols * q->cols * sizeof(double);
    bool failed;
    FT_TRY(ft_quantizer_select(q, err));
    FT_TRY(ft_quantizer_reserve(q, &q->upper, bytes, err));
    FT_TRY(ft_quantizer_reserve(q, &q->inverse, bytes, err));
    FT_TRY(ft_quantizer_reserve(q, &q->failed, sizeof(int), err));
    FT_TRY(ft_quantizer_fill(q, q->failed.data, 0, sizeof(int), err));
    FT_TRY(ft_quantizer_finish_columns(q, name, err));
    FT_TRY(choose_order(q, name, err));
    FT_TRY(finish_sums(q, err));
    if (q->has_cross)
        FT_TRY(solve_correction(q, err));
    FT_TRY(find_upper(q, err));
    FT_TRY(ft_quantizer_failed(q, &failed, err));
    return failed ? ft_fail(err, FT_EFORMAT, "%s: the sums of its inputs are not those of a square",
                            name)
                  : FT_OK;
}
