/*
 * hessian.h - the damped moments in rounding order, a Cholesky factorization of diagonal blocks,
 * and U: bodies of kernels.
 *
 * gptq.c of calibrate/weights/ explains the reverse order. The upper triangle of a row-major matrix
 * is the lower triangle of a column-major one, as cuBLAS sees it: so a = U^T U is a = L L^T.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_HESSIAN_H
#define FT_KERNELS_CUDA_QUANTIZE_HESSIAN_H

#include "kernels/layout.h"

#include <math.h>

/* [n, n] threads: H in reverse rounding order, damped. */
typedef struct ft_cuda_order_hessian_args {
    const double *moments; /* [n, n] */
    const uint32_t *order; /* [n] */
    size_t n, n_dead;
    double damping, dead_diagonal;
    double *out; /* [n, n] */
} ft_cuda_order_hessian_args;

FT_HOST_DEVICE void ft_cuda_order_hessian_at(const ft_cuda_order_hessian_args *a, size_t index)
{
    size_t n = a->n, row = index / n, col = index % n;
    double value = a->moments[a->order[n - 1 - row] * n + a->order[n - 1 - col]];
    if (row == col)
        value += a->damping + (row < a->n_dead ? a->dead_diagonal : 0.0);
    a->out[index] = value;
}

/* [n, n] threads: moments with something added to their diagonal. */
typedef struct ft_cuda_damp_moments_args {
    const double *moments;
    size_t n;
    double added;
    double *out;
} ft_cuda_damp_moments_args;

FT_HOST_DEVICE void ft_cuda_damp_moments_at(const ft_cuda_damp_moments_args *a, size_t index)
{
    a->out[index] = a->moments[index] + (index / a->n == index % a->n ? a->added : 0.0);
}

/* [n, n] threads. */
typedef struct ft_cuda_set_identity_args {
    size_t n;
    double *out;
} ft_cuda_set_identity_args;

FT_HOST_DEVICE void ft_cuda_set_identity_at(const ft_cuda_set_identity_args *a, size_t index)
{
    a->out[index] = index / a->n == index % a->n ? 1.0 : 0.0;
}

/* [n, n] threads: the inverse triangle, read from its end, is U. */
typedef struct ft_cuda_store_upper_args {
    const double *inverse; /* [n, n], an upper triangle in reverse rounding order */
    size_t n;
    float *out; /* [n, n], with zeros below the diagonal */
} ft_cuda_store_upper_args;

FT_HOST_DEVICE void ft_cuda_store_upper_at(const ft_cuda_store_upper_args *a, size_t index)
{
    size_t n = a->n, row = index / n, col = index % n;
    a->out[index] = col >= row ? (float) a->inverse[(n - 1 - col) * n + (n - 1 - row)] : 0.0f;
}

/* ---- Cholesky factor of a diagonal block -------------------------------------------------- */

enum { FT_CUDA_CHOLESKY_BLOCK = 128 };

/*
 * A block of threads, one for each row: for each column first ..._update(), then ..._divide(), each
 * by all threads before the next step. `a` is the block's first element, column-major.
 */
typedef struct ft_cuda_cholesky_args {
    double *a;
    size_t n, count; /* stride; rows of the block, at most FT_CUDA_CHOLESKY_BLOCK */
    int *failed;     /* becomes 1 if the matrix is not positive definite */
} ft_cuda_cholesky_args;

/* Subtracts the columns before `col` from it; and stores the root of the last pivot. */
FT_HOST_DEVICE void ft_cuda_cholesky_update(const ft_cuda_cholesky_args *a, size_t col, size_t row)
{
    if (row >= a->count)
        return;
    if (row + 1 == col) {
        double *pivot = &a->a[row * a->n + row];
        if (!(*pivot > 0.0) || !isfinite(*pivot))
            *a->failed = 1;
        *pivot = sqrt(*pivot);
    }
    if (row < col || col == a->count)
        return;
    double sum = a->a[col * a->n + row];
    for (size_t l = 0; l < col; l++)
        sum -= a->a[l * a->n + row] * a->a[l * a->n + col];
    a->a[col * a->n + row] = sum;
}

FT_HOST_DEVICE void ft_cuda_cholesky_divide(const ft_cuda_cholesky_args *a, size_t col, size_t row)
{
    if (row > col && row < a->count)
        a->a[col * a->n + row] /= sqrt(a->a[col * a->n + col]);
}

#endif
