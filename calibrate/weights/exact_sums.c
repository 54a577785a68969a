/*
 * exact_sums.c - sums over samples of |x|, x * x and x[i] * x[j] that are the same in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/exact_sums.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_UNITS 0x1p60 /* multiples in 1 */
#define MAX_COLUMN_SUM 0x1p65
#define MAX_UNITS 0x1p61

enum { STRIPE_ROWS = 192 }; /* rows of the moments that are computed at a time */

ft_status ft_exact_sums_init(ft_exact_sums *s, size_t cols, bool moments, ft_error *err)
{
    *s = (ft_exact_sums){ .cols = cols, .unit = 1.0 };
    s->magnitude = ft_calloc(cols, sizeof *s->magnitude);
    s->square = ft_calloc(cols, sizeof *s->square);
    s->moments = moments ? ft_calloc(cols * cols, sizeof *s->moments) : NULL;
    bool success = s->magnitude != NULL && s->square != NULL && (!moments || s->moments != NULL);
    return success ? FT_OK
                   : ft_fail(err, FT_ENOMEM, "no memory for the sums of %zu columns", cols);
}

void ft_exact_sums_fini(ft_exact_sums *s)
{
    free(s->magnitude);
    free(s->square);
    free(s->moments);
    *s = (ft_exact_sums){ 0 };
}

double ft_exact_sums_unit(const float *x, size_t rows, size_t cols)
{
    int exponent = 0;
    double sum = 0.0;
    for (size_t i = 0; i < rows * cols; i++)
        sum += (double) x[i] * (double) x[i];
    if (sum > 0.0 && isfinite(sum))
        (void) frexp(sum / (double) (rows * cols), &exponent);
    return ldexp(1.0, exponent - 20);
}

size_t ft_exact_sums_scratch(size_t cols)
{
    return ft_min_size(STRIPE_ROWS, cols) * cols;
}

/* ---- Columns ------------------------------------------------------------------------------ */

/* Adds the columns of one sample; each is one chain of sums over its rows. */
static ft_status add_columns(ft_exact_sums *s, const float *x, size_t rows, const char *name,
                             ft_error *err)
{
    for (size_t col = 0; col < s->cols; col++) {
        double magnitude = 0.0, square = 0.0;
        for (size_t row = 0; row < rows; row++) {
            double value = (double) x[row * s->cols + col];
            magnitude += fabs(value);
            square += value * value;
        }
        if (!isfinite(square))
            return ft_fail(err, FT_EFORMAT, "%s: column %zu is not finite on the sample data", name,
                           col);
        if (square > MAX_COLUMN_SUM)
            return ft_fail(err, FT_EFORMAT,
                           "%s: column %zu has a sum of squares of %g in one sample, expected at "
                           "most %g",
                           name, col, square, MAX_COLUMN_SUM);
        s->magnitude[col] += (ft_int128) rint(magnitude * COLUMN_UNITS);
        s->square[col] += (ft_int128) rint(square * COLUMN_UNITS);
    }
    return FT_OK;
}

/* No moment is larger than the largest sum of squares, so if those fit, all fit. */
static ft_status check_columns(const ft_exact_sums *s, const char *name, ft_error *err)
{
    for (size_t col = 0; col < s->cols; col++) {
        double square = (double) s->square[col] / COLUMN_UNITS;
        if (square > MAX_COLUMN_SUM || (s->moments != NULL && square > MAX_UNITS * s->unit))
            return ft_fail(err, FT_EFORMAT,
                           "%s: column %zu has a sum of squares of %g, too large to be exact next "
                           "to a unit of %g; use fewer or similar samples",
                           name, col, square, s->unit);
    }
    return FT_OK;
}

/* ---- Moments ------------------------------------------------------------------------------ */

/* Adds rows first .. of the upper triangle of x^T x. */
static void add_stripe(ft_exact_sums *s, const ft_linalg *linalg, const float *x, size_t rows,
                       double *scratch, size_t first)
{
    size_t cols = s->cols, count = ft_min_size(STRIPE_ROWS, cols - first), width = cols - first;
    double units = 1.0 / s->unit;
    memset(scratch, 0, count * width * sizeof *scratch);
    ft_linalg_dgemm(
        linalg, &(ft_dgemm){ .m = count,
                             .n = width,
                             .k = rows,
                             .a = { .f32 = x + first, .row_stride = 1, .col_stride = cols },
                             .b = { .f32 = x + first, .row_stride = cols, .col_stride = 1 },
                             .upper = true,
                             .c = scratch,
                             .c_stride = width });
    for (size_t i = 0; i < count; i++) {
        int64_t *sums = s->moments + (first + i) * cols + first;
        for (size_t k = i; k < width; k++)
            sums[k] += (int64_t) rint(scratch[i * width + k] * units);
    }
}

ft_status ft_exact_sums_add(ft_exact_sums *s, const ft_linalg *linalg, const float *x, size_t rows,
                            double *scratch, const char *name, ft_error *err)
{
    FT_TRY(add_columns(s, x, rows, name, err));
    FT_TRY(check_columns(s, name, err));
    for (size_t first = 0; s->moments != NULL && first < s->cols; first += STRIPE_ROWS)
        add_stripe(s, linalg, x, rows, scratch, first);
    s->rows += rows;
    return FT_OK;
}

/* ---- Results ------------------------------------------------------------------------------ */

ft_status ft_exact_sums_merge(ft_exact_sums *s, const ft_exact_sums *others, const char *name,
                              ft_error *err)
{
    for (size_t i = 0; i < s->cols; i++) {
        s->magnitude[i] += others->magnitude[i];
        s->square[i] += others->square[i];
    }
    FT_TRY(check_columns(s, name, err));
    for (size_t i = 0; i < s->cols * s->cols && s->moments != NULL; i++)
        s->moments[i] += others->moments[i];
    s->rows += others->rows;
    return FT_OK;
}

void ft_exact_sums_columns(const ft_exact_sums *s, double *magnitude, double *square)
{
    for (size_t i = 0; i < s->cols; i++) {
        magnitude[i] = (double) s->magnitude[i] / COLUMN_UNITS;
        square[i] = (double) s->square[i] / COLUMN_UNITS;
    }
}

double *ft_exact_sums_take_moments(ft_exact_sums *s)
{
    size_t cols = s->cols;
    int64_t *sums = s->moments;
    double *moments = (void *) sums;
    s->moments = NULL;
    for (size_t i = 0; i < cols * cols && sums != NULL; i++) {
        int64_t sum = sums[i];
        double moment = (double) sum * s->unit;
        memcpy(&moments[i], &moment, sizeof moment);
    }
    for (size_t i = 0; i < cols && moments != NULL; i++)
        moments[i * cols + i] = (double) s->square[i] / COLUMN_UNITS;
    for (size_t row = 1; row < cols && moments != NULL; row++)
        for (size_t col = 0; col < row; col++)
            moments[row * cols + col] = moments[col * cols + row];
    return moments;
}
