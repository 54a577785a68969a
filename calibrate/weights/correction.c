/*
 * correction.c - the change of weights that makes up for the errors of the quantized prefix.
 *
 * The inverse is R R^T, with the upper triangle R of ft_linalg_cholesky_inverse(). Its product with
 * the rows of the cross moments takes some rows at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/correction.h"

#include "kernels/linalg.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

enum { STRIPE_ROWS = 192 };

static double damping(const ft_input_stats *input)
{
    double sum = 0.0;
    for (size_t i = 0; i < input->cols; i++)
        sum += input->moments[i * input->cols + i];
    return sum > 0.0 ? 0.1 * sum / (double) input->cols : 1.0;
}

/* R, with zeros below its diagonal. */
static ft_status factorize(double *r, const ft_input_stats *input, const ft_linalg *linalg,
                           ft_error *err)
{
    size_t n = input->cols;
    double added = damping(input);
    memcpy(r, input->moments, n * n * sizeof *r);
    for (size_t i = 0; i < n; i++)
        r[i * n + i] += added;
    if (ft_linalg_cholesky_inverse(linalg, r, n, err) != FT_OK)
        return ft_fail(err, FT_EFORMAT, "%s: the sums of its inputs are not those of a square",
                       input->name);
    for (size_t i = 1; i < n; i++)
        memset(r + i * n, 0, i * sizeof *r);
    return FT_OK;
}

/* cross [rows, n] becomes cross . R R^T. */
static void multiply_rows(double *cross, size_t rows, size_t n, const double *r, double *product,
                          const ft_linalg *linalg)
{
    ft_dgemm gemm = { .m = rows,
                      .n = n,
                      .k = n,
                      .a = { .f64 = cross, .row_stride = n, .col_stride = 1 },
                      .b = { .f64 = r, .row_stride = n, .col_stride = 1 },
                      .b_upper = true,
                      .c = product,
                      .c_stride = n };
    memset(product, 0, rows * n * sizeof *product);
    ft_linalg_dgemm(linalg, &gemm);
    gemm.a.f64 = product;
    gemm.b = (ft_linalg_matrix){ .f64 = r, .row_stride = 1, .col_stride = n };
    gemm.b_upper = false;
    gemm.c = cross;
    memset(cross, 0, rows * n * sizeof *cross);
    ft_linalg_dgemm(linalg, &gemm);
}

ft_status ft_correction_solve(ft_input_stats *input, int threads, ft_error *err)
{
    size_t n = input->cols;
    ft_linalg linalg;
    FT_TRY(ft_linalg_init(&linalg, threads, err));
    double *r = ft_calloc(n * n, sizeof *r),
           *product = ft_calloc(ft_min_size(STRIPE_ROWS, n) * n, sizeof *product);
    ft_status status =
        r != NULL && product != NULL
            ? factorize(r, input, &linalg, err)
            : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu x %zu sums", input->name, n, n);
    for (size_t first = 0; first < n && status == FT_OK; first += STRIPE_ROWS)
        multiply_rows(input->cross + first * n, ft_min_size(STRIPE_ROWS, n - first), n, r, product,
                      &linalg);
    free(r);
    free(product);
    return status;
}
