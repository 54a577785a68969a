/*
 * cholesky.c - the inverse of a Cholesky factor, by recursion down to small triangles.
 *
 * Both steps halve their rows. What the first half contributes to the second is one GEMM, which
 * takes nearly all the time. The recursion depends on n only, and so does the order of the sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/linalg.h"

#include "kernels/cpu/linalg/f64.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 16 }; /* rows that are computed without a GEMM */

typedef struct triangle {
    const ft_linalg *linalg;
    const ft_double_kernels *kernels;
    double *a; /* [n, n] */
    size_t n;
    double *copy; /* [n / 2, n / 2, rounded up] */
} triangle;

static double *row_of(const triangle *t, size_t row)
{
    return t->a + row * t->n;
}

/* ---- a = U^T U ---------------------------------------------------------------------------- */

/* Rows first .. end - 1 of U, to which rows before them do not contribute any more. */
static bool factorize_small(const triangle *t, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        double *row = row_of(t, i);
        for (size_t l = first; l < i; l++)
            t->kernels->subtract_scaled(row + i, row_of(t, l)[i], row_of(t, l) + i, t->n - i);
        if (!(row[i] > 0.0) || !isfinite(row[i]))
            return false;
        double pivot = sqrt(row[i]);
        for (size_t j = i; j < t->n; j++)
            row[j] /= pivot;
    }
    return true;
}

static bool factorize(const triangle *t, size_t first, size_t end)
{
    if (end - first <= SMALL)
        return factorize_small(t, first, end);
    size_t middle = first + (end - first) / 2;
    if (!factorize(t, first, middle))
        return false;
    const double *right = row_of(t, first) + middle;
    ft_linalg_dgemm(t->linalg,
                    &(ft_dgemm){ .m = end - middle,
                                 .n = t->n - middle,
                                 .k = middle - first,
                                 .a = { .f64 = right, .row_stride = 1, .col_stride = t->n },
                                 .b = { .f64 = right, .row_stride = t->n, .col_stride = 1 },
                                 .subtract = true,
                                 .upper = true,
                                 .c = row_of(t, middle) + middle,
                                 .c_stride = t->n });
    return factorize(t, middle, end);
}

/* ---- X = U^-1 ----------------------------------------------------------------------------- */

/*
 * Rows first .. end - 1 of X, in place of those of U. Columns from `end` on already hold minus what
 * the rows of X from `end` on contribute.
 */
static void invert_small(const triangle *t, size_t first, size_t end)
{
    for (size_t i = end; i-- > first;) {
        double *row = row_of(t, i), pivot = row[i], u[SMALL];
        memcpy(u, row + i + 1, (end - i - 1) * sizeof *u);
        memset(row + i + 1, 0, (end - i - 1) * sizeof *row);
        row[i] = 1.0;
        for (size_t l = i + 1; l < end; l++)
            t->kernels->subtract_scaled(row + l, u[l - i - 1], row_of(t, l) + l, t->n - l);
        for (size_t j = i; j < t->n; j++)
            row[j] /= pivot;
    }
}

/* Moves a block of U to the copy, and leaves zeros. */
static void take_block(const triangle *t, size_t first, size_t middle, size_t end)
{
    size_t cols = end - middle;
    for (size_t i = first; i < middle; i++) {
        memcpy(t->copy + (i - first) * cols, row_of(t, i) + middle, cols * sizeof *t->copy);
        memset(row_of(t, i) + middle, 0, cols * sizeof *t->a);
    }
}

static void invert(const triangle *t, size_t first, size_t end)
{
    if (end - first <= SMALL) {
        invert_small(t, first, end);
        return;
    }
    size_t middle = first + (end - first) / 2;
    invert(t, middle, end);
    take_block(t, first, middle, end);
    ft_linalg_dgemm(
        t->linalg,
        &(ft_dgemm){
            .m = middle - first,
            .n = t->n - middle,
            .k = end - middle,
            .a = { .f64 = t->copy, .row_stride = end - middle, .col_stride = 1 },
            .b = { .f64 = row_of(t, middle) + middle, .row_stride = t->n, .col_stride = 1 },
            .subtract = true,
            .b_upper = true,
            .c = row_of(t, first) + middle,
            .c_stride = t->n });
    invert(t, first, middle);
}

static void clear_lower(const triangle *t)
{
    for (size_t i = 1; i < t->n; i++)
        memset(row_of(t, i), 0, i * sizeof *t->a);
}

ft_status ft_linalg_cholesky_inverse(const ft_linalg *linalg, double *a, size_t n, ft_error *err)
{
    size_t half = (n + 1) / 2;
    triangle t = { .linalg = linalg,
                   .kernels = ft_double_kernels_for((ft_isa) linalg->isa),
                   .a = a,
                   .n = n,
                   .copy = ft_calloc(half * half, sizeof(double)) };
    if (t.copy == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a block of %zu x %zu doubles", half, half);
    bool is_definite = factorize(&t, 0, n);
    if (is_definite) {
        clear_lower(&t);
        invert(&t, 0, n);
    }
    free(t.copy);
    return is_definite
               ? FT_OK
               : ft_fail(err, FT_EFORMAT, "a matrix of %zu rows is not positive definite", n);
}
