/*
 * gemm_problem.h - an INT8 GEMM as a problem for which there are several kernels, their times, and
 * the fastest one.  Valid C++, for .cu files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_GEMM_PROBLEM_H
#define FT_KERNELS_GEMM_PROBLEM_H

#include "kernels/op.h"

/* An int8 GEMM y [m, n] = act(x [m, k] . w [n, k]^T), y int8, F32 or F16. */
typedef struct ft_gemm_problem {
    size_t m, n, k;
    ft_dtype y;
    ft_activation activation;
    bool merged; /* w is several matrices, such as those of Q, K and V, and so is y */
} ft_gemm_problem;

enum { FT_GEMM_KERNEL_NAME = 32 };

/* A kernel for it, and its time. */
typedef struct ft_gemm_candidate {
    char name[FT_GEMM_KERNEL_NAME]; /* "mma"; "cuBLASLt ..." for the library, which may omit the
                                       epilogue */
    double seconds;
    bool chosen; /* plans use this kernel */
} ft_gemm_candidate;

enum { FT_MAX_GEMM_CANDIDATES = 16 };

/* The result of tuning: the fastest kernel, and the one that plans use without it. */
typedef struct ft_gemm_tuning {
    ft_gemm_candidate fastest, used; /* without names: no kernel supports the GEMM */
} ft_gemm_tuning;

/* The fastest kernel for GEMMs of a shape with up to problem.m rows. */
typedef struct ft_tuned_gemm {
    ft_gemm_problem problem;
    char kernel[FT_GEMM_KERNEL_NAME];
} ft_tuned_gemm;

#endif
