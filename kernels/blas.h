/*
 * blas.h - OpenBLAS, loaded when something needs it, and called for one thread's work at a time.
 *
 * Programs that never multiply floats do not load it: its constructor reserves 128 MB of addresses
 * a thread and, where there are too few, tries for ever.  Matrices are row by row, as in CBLAS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BLAS_H
#define FT_KERNELS_BLAS_H

#include "runtime/ft.h"

#include <cblas.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Load it for callers of so many threads; a later call only asks for addresses.  FT_EUNSUPPORTED:
 * it is installed or lacks a function, FT_ENOMEM: the limit on address space is too low.
 */
ft_status ft_blas_load(int threads, ft_error *err);

/* The processor that its kernels are for, such as "Haswell"; "no OpenBLAS" where it is missing. */
const char *ft_blas_core(void);

/* As those of CBLAS and LAPACK, behind ft_blas_load(); on the calling thread alone. */
void ft_sgemm(CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n, int k, float alpha,
              const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void ft_dsyrk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans_a, int n, int k, double alpha, const double *a,
              int lda, double beta, double *c, int ldc);
void ft_dsymm(CBLAS_SIDE side, CBLAS_UPLO uplo, int m, int n, double alpha, const double *a,
              int lda, const double *b, int ldb, double beta, double *c, int ldc);

/*
 * The inverse of the Cholesky factor of `a` [n, n], in place: the lower triangle as Fortran stores
 * it, column by column.  0, or the row at which there is no factor.
 */
int ft_cholesky_inverse(double *a, int n);

#pragma GCC visibility pop

#endif
