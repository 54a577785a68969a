/*
 * gemm_problem.h - a GEMM as a problem for which there are several kernels, their times, and the
 * fastest one.  Valid C++, for .cu files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_GEMM_PROBLEM_H
#define FT_KERNELS_GEMM_PROBLEM_H

#include "kernels/op.h"

/* y [m, n] = act(x [m, k] . w [n, k]^T + b) */
typedef struct ft_gemm_problem {
    size_t m, n, k;
    ft_dtype x, w, y;      /* w FT_U4 or FT_U8: group-wise quantized ... */
    int32_t group;         /* ... with this group size, ... */
    bool zero_points;      /* ... zero points ... */
    bool int8_activations; /* ... and x, a float, quantized to int8 as well */
    bool batch_invariant;  /* float w: the order of sums depends on n and k alone */
    ft_activation activation;
    int linears; /* n is the columns of so many matrices, such as those of Q, K and V, and so is y
                  */
} ft_gemm_problem;

/* Whether two problems differ in m at most. */
static inline bool ft_gemm_problem_same_shape(const ft_gemm_problem *a, const ft_gemm_problem *b)
{
    return a->n == b->n && a->k == b->k && a->x == b->x && a->w == b->w && a->y == b->y &&
           a->group == b->group && a->zero_points == b->zero_points &&
           a->int8_activations == b->int8_activations && a->batch_invariant == b->batch_invariant &&
           a->activation == b->activation && a->linears == b->linears;
}

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
