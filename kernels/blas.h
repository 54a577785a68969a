/*
 * blas.h - OpenBLAS, loaded on demand and called single-threaded.
 *
 * Programs without float GEMMs do not load it: its constructor reserves 128 MB of address space per
 * thread and retries forever if there is too little.  Matrices are row-major, as in CBLAS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_BLAS_H
#define FT_KERNELS_BLAS_H

#include "runtime/ft.h"

#include <cblas.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Load it for callers on `threads` threads; later calls only check the address space.
 * FT_EUNSUPPORTED: it is not installed or lacks a function.  FT_ENOMEM: the limit on address space
 * is too low.
 */
ft_status ft_blas_load(int threads, ft_error *err);

/* The CPU type of its kernels, such as "Haswell"; "no OpenBLAS" if it is missing. */
const char *ft_blas_core(void);

/* The functions of CBLAS and LAPACK, on the calling thread only; ft_blas_load() comes first. */
void ft_sgemm(CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n, int k, float alpha,
              const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void ft_dsyrk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans_a, int n, int k, double alpha, const double *a,
              int lda, double beta, double *c, int ldc);
void ft_dsymm(CBLAS_SIDE side, CBLAS_UPLO uplo, int m, int n, double alpha, const double *a,
              int lda, const double *b, int ldb, double beta, double *c, int ldc);

/*
 * Replace `a` [n, n] by the inverse of its Cholesky factor: the lower triangle, column-major.
 * Returns 0, or the LAPACK info of the row at which the factorization fails.
 */
int ft_cholesky_inverse(double *a, int n);

#pragma GCC visibility pop

#endif
