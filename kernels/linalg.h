/*
 * linalg.h - dense linear algebra for calibration and for the check of int8: matrix products and a
 * Cholesky factorization, in double precision.
 *
 * Every element of a result is one chain of operations in a fixed order. A product is rounded
 * before it is added, because not every processor can fuse the two at speed. So results depend
 * neither on the instruction set nor on the number of threads. Matrices are row-major.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_LINALG_H
#define FT_KERNELS_LINALG_H

#include "runtime/ft.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The instruction set and the number of threads; for any number of callers. */
typedef struct ft_linalg {
    int isa;
    int threads;
} ft_linalg;

/* FT_EARG or FT_EUNSUPPORTED: the environment variable FT_CPU is wrong. */
FT_MUST_USE ft_status ft_linalg_init(ft_linalg *linalg, int threads, ft_error *err);

/*
 * Element [i, j] is stored at index i * row_stride + j * col_stride; one of the strides is 1.
 */
typedef struct ft_linalg_matrix {
    const double *f64; /* the elements, or ... */
    const float *f32;  /* ... floats, which are converted */
    size_t row_stride, col_stride;
} ft_linalg_matrix;

/*
 * c += a . b, or c -= a . b: the products a[i, l] * b[l, j] are added to c[i, j] in the order of l.
 * Exact if all sums are integers below 2^53.
 */
typedef struct ft_dgemm {
    size_t m, n, k;
    ft_linalg_matrix a, b; /* [m, k] and [k, n] */
    bool subtract;
    bool upper;   /* only elements with j >= i are needed; the others may be left as they are */
    bool b_upper; /* b[l, j] is 0 for l > j, and products with it may be left out */
    double *c;    /* [m, n], apart from a and b */
    size_t c_stride;
} ft_dgemm;

void ft_linalg_dgemm(const ft_linalg *linalg, const ft_dgemm *gemm);

/*
 * Replaces the upper triangle of a symmetric matrix `a` [n, n] by U^-1, where a = U^T U. Elements
 * below the diagonal are undefined. Allocates n * n / 4 doubles.
 *
 * FT_ENOMEM; FT_EFORMAT if `a` is not positive definite, or not finite.
 */
FT_MUST_USE ft_status ft_linalg_cholesky_inverse(const ft_linalg *linalg, double *a, size_t n,
                                                 ft_error *err);

enum { FT_LINALG_SGEMM_UNIT = 16 };

/*
 * c [m, n] -= a [m, k] . b [k, n] in float: each element is one chain of fused multiply-adds, in
 * the order of k. n is a multiple of FT_LINALG_SGEMM_UNIT.
 */
typedef struct ft_sgemm {
    size_t m, n, k;
    const float *a, *b;
    size_t a_stride, b_stride;
    float *c;
    size_t c_stride;
} ft_sgemm;

void ft_linalg_sgemm_subtract(const ft_linalg *linalg, const ft_sgemm *gemm);

#pragma GCC visibility pop

#endif
