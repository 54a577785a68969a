/*
 * exact_sums.c - sums over samples of |x|, x * x and x[i] * x[j] that are the same in any order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/exact_sums.h"

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
    return success ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for the sums of %zu columns", cols);
}

ft_status ft_exact_sums_init_cross(ft_exact_sums *s, ft_error *err)
{
    s->difference = ft_calloc(s->cols, sizeof *s->difference);
    s->cross = ft_calloc(s->cols * s->cols, sizeof *s->cross);
    return s->difference != NULL && s->cross != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for the sums of %zu columns", s->cols);
}

void ft_exact_sums_fini(ft_exact_sums *s)
{
    free(s->difference);
    free(s->cross);
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

/* A sum over one sample in units of 2^-60. */
static ft_int128 column_units(double sum)
{
    return (ft_int128) rint(sum * COLUMN_UNITS);
}

/* Whether a sum of squares fits, together with what it bounds. */
static ft_status check_column(const ft_exact_sums *s, size_t col, double square, const char *name,
                              ft_error *err)
{
    bool has_moments = s->moments != NULL || s->cross != NULL;
    if (!isfinite(square))
        return ft_fail(err, FT_EFORMAT, "%s: column %zu is not finite on the sample data", name,
                       col);
    if (square > MAX_COLUMN_SUM || (has_moments && square > MAX_UNITS * s->unit))
        return ft_fail(err, FT_EFORMAT,
                       "%s: column %zu has a sum of squares of %g, too large to be exact next to a "
                       "unit of %g; use fewer or similar samples",
                       name, col, square, s->unit);
    return FT_OK;
}

/*
 * Adds the squares of one sample to `sum`, and its magnitudes, unless that is NULL; each column is
 * one chain of sums over its rows. No moment is larger than the largest sum of squares, so if those
 * fit, all fit.
 */
static ft_status add_columns(ft_exact_sums *s, ft_int128 *sum, ft_int128 *magnitudes,
                             const float *x, size_t rows, const char *name, ft_error *err)
{
    for (size_t col = 0; col < s->cols; col++) {
        double magnitude = 0.0, square = 0.0;
        for (size_t row = 0; row < rows; row++) {
            double value = (double) x[row * s->cols + col];
            magnitude += fabs(value);
            square += value * value;
        }
        FT_TRY(check_column(s, col, square, name, err));
        sum[col] += column_units(square);
        if (magnitudes != NULL)
            magnitudes[col] += column_units(magnitude);
        FT_TRY(check_column(s, col, (double) sum[col] / COLUMN_UNITS, name, err));
    }
    return FT_OK;
}

/* ---- Moments ------------------------------------------------------------------------------ */

/*
 * Adds rows first .. of a^T b from column `left` on; `upper`: only its upper triangle. `scratch`
 * receives the products of this sample, before they are rounded.
 */
static void add_stripe(ft_exact_sums *s, int64_t *sums, const ft_linalg *linalg, const float *a,
                       const float *b, size_t rows, double *scratch, size_t first, bool upper)
{
    size_t cols = s->cols, count = ft_min_size(STRIPE_ROWS, cols - first);
    size_t left = upper ? first : 0, width = cols - left;
    double units = 1.0 / s->unit;
    memset(scratch, 0, count * width * sizeof *scratch);
    ft_linalg_dgemm(linalg,
                    &(ft_dgemm){ .m = count,
                                 .n = width,
                                 .k = rows,
                                 .a = { .f32 = a + first, .row_stride = 1, .col_stride = cols },
                                 .b = { .f32 = b + left, .row_stride = cols, .col_stride = 1 },
                                 .upper = upper,
                                 .c = scratch,
                                 .c_stride = width });
    for (size_t i = 0; i < count; i++)
        for (size_t k = upper ? i : 0; k < width; k++)
            sums[(first + i) * cols + left + k] += (int64_t) rint(scratch[i * width + k] * units);
}

ft_status ft_exact_sums_add(ft_exact_sums *s, const ft_linalg *linalg, const float *x, size_t rows,
                            double *scratch, const char *name, ft_error *err)
{
    FT_TRY(add_columns(s, s->square, s->magnitude, x, rows, name, err));
    for (size_t first = 0; s->moments != NULL && first < s->cols; first += STRIPE_ROWS)
        add_stripe(s, s->moments, linalg, x, x, rows, scratch, first, true);
    s->rows += rows;
    return FT_OK;
}

ft_status ft_exact_sums_add_cross(ft_exact_sums *s, const ft_linalg *linalg, const float *d,
                                  const float *x, size_t rows, double *scratch, const char *name,
                                  ft_error *err)
{
    FT_TRY(add_columns(s, s->difference, NULL, d, rows, name, err));
    for (size_t first = 0; first < s->cols; first += STRIPE_ROWS)
        add_stripe(s, s->cross, linalg, d, x, rows, scratch, first, false);
    return FT_OK;
}

/* ---- Results ------------------------------------------------------------------------------ */

ft_status ft_exact_sums_merge(ft_exact_sums *s, const ft_exact_sums *others, const char *name,
                              ft_error *err)
{
    for (size_t i = 0; i < s->cols; i++) {
        s->magnitude[i] += others->magnitude[i];
        s->square[i] += others->square[i];
        FT_TRY(check_column(s, i, (double) s->square[i] / COLUMN_UNITS, name, err));
        if (s->cross == NULL)
            continue;
        s->difference[i] += others->difference[i];
        FT_TRY(check_column(s, i, (double) s->difference[i] / COLUMN_UNITS, name, err));
    }
    for (size_t i = 0; i < s->cols * s->cols && s->moments != NULL && others->moments != NULL; i++)
        s->moments[i] += others->moments[i];
    for (size_t i = 0; i < s->cols * s->cols && s->cross != NULL; i++)
        s->cross[i] += others->cross[i];
    s->rows += others->rows;
    return FT_OK;
}

ft_status ft_exact_sums_add_moments(ft_exact_sums *s, size_t row, const int64_t *moments,
                                    const char *name, ft_error *err)
{
    const int64_t max = (int64_t) 1 << 62; /* 2^61 units, and rounding */
    int64_t *sums = s->moments + row * s->cols + row;
    for (size_t i = 0; i < s->cols - row; i++)
        if (__builtin_add_overflow(sums[i], moments[i], &sums[i]) || sums[i] > max ||
            sums[i] < -max)
            return ft_fail(err, FT_EFORMAT, "%s: moment %zu, %zu is out of range", name, row,
                           row + i);
    return FT_OK;
}

void ft_exact_sums_columns(const ft_exact_sums *s, double *magnitude, double *square)
{
    for (size_t i = 0; i < s->cols; i++) {
        if (magnitude != NULL)
            magnitude[i] = (double) s->magnitude[i] / COLUMN_UNITS;
        square[i] = (double) s->square[i] / COLUMN_UNITS;
    }
}

/* Multiples of a unit as doubles, in the same memory. */
static double *as_doubles(int64_t *sums, size_t count, double unit)
{
    double *values = (void *) sums;
    for (size_t i = 0; i < count && sums != NULL; i++) {
        double value = (double) sums[i] * unit;
        memcpy(&values[i], &value, sizeof value);
    }
    return values;
}

double *ft_exact_sums_take_moments(ft_exact_sums *s)
{
    size_t cols = s->cols;
    double *moments = as_doubles(s->moments, cols * cols, s->unit);
    s->moments = NULL;
    for (size_t i = 0; i < cols && moments != NULL; i++)
        moments[i * cols + i] = (double) s->square[i] / COLUMN_UNITS;
    for (size_t row = 1; row < cols && moments != NULL; row++)
        for (size_t col = 0; col < row; col++)
            moments[row * cols + col] = moments[col * cols + row];
    return moments;
}

double *ft_exact_sums_take_cross(ft_exact_sums *s)
{
    double *cross = as_doubles(s->cross, s->cols * s->cols, s->unit);
    s->cross = NULL;
    return cross;
}
