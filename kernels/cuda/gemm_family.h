/*
 * gemm_family.h - families of GEMM kernels that return the same bits, so that any of them may be
 * chosen for its speed: what a family tells the tuner, and what a tuning file tells a family.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_FAMILY_H
#define FT_KERNELS_CUDA_GEMM_FAMILY_H

#include "kernels/cuda/cuda.h"
#include "kernels/gemm_problem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ft_cuda_gemm_operand {
    FT_CUDA_GEMM_X,
    FT_CUDA_GEMM_W,
    FT_CUDA_GEMM_PREPACKED, /* w in the layout of wgmma_gemm.cu */
    FT_CUDA_GEMM_SCALE,     /* of w: F32 for int8 weights, F16 for group-wise ones */
    FT_CUDA_GEMM_ZERO,      /* zero points of w */
    FT_CUDA_GEMM_BIAS,
    FT_CUDA_GEMM_Y,
    FT_CUDA_GEMM_SCRATCH,
    FT_CUDA_GEMM_COUNTERS, /* zeros */
    FT_CUDA_GEMM_OPERANDS
} ft_cuda_gemm_operand;

/* A GEMM with its operands in device memory; NULL: the family has no such operand. */
typedef struct ft_cuda_gemm_operands {
    const ft_gemm_problem *problem;
    void *data[FT_CUDA_GEMM_OPERANDS];
    size_t bytes[FT_CUDA_GEMM_OPERANDS];
    void *blas; /* cublasHandle_t */
} ft_cuda_gemm_operands;

/* A candidate is a kernel with a tile; candidates are numbered from 0 on. */
typedef struct ft_cuda_gemm_family {
    bool (*computes)(const ft_gemm_problem *problem);

    /* The name of a candidate, which no other one of the family has; false: there is none. */
    bool (*describe)(int candidate, char name[FT_GEMM_KERNEL_NAME]);

    /* Bytes of each operand of out->problem. */
    void (*measure)(const ft_cuda_device_props *props, ft_cuda_gemm_operands *out);

    /* Computes operands from others; NULL: there are none.  Returns a cudaError_t. */
    int (*prepare)(void *stream, const ft_cuda_gemm_operands *operands);

    /* The candidate that forward passes use without a tuning file; -1: no kernel fits. */
    int (*select)(const ft_cuda_device_props *props, const ft_cuda_gemm_operands *operands);

    /* Whether a candidate computes the GEMM, with the bits of the selected one. */
    bool (*fits)(int candidate, const ft_cuda_device_props *props,
                 const ft_cuda_gemm_operands *operands);

    /* Launches a candidate that fits.  Returns a cudaError_t. */
    int (*launch)(int candidate, const ft_cuda_device_props *props, void *stream,
                  const ft_cuda_gemm_operands *operands);
} ft_cuda_gemm_family;

extern const ft_cuda_gemm_family ft_cuda_int8_family, ft_cuda_groupwise_family, ft_cuda_f16_family;

/* ---- Tuned GEMMs (tuned_gemm.c) ----------------------------------------------------------- */

/* The candidate for GEMMs of a shape with up to problem.m rows. */
typedef struct ft_cuda_tuned_gemm {
    ft_gemm_problem problem;
    int candidate;
} ft_cuda_tuned_gemm;

/* The candidate of the tuning file for the fewest rows >= problem->m, or -1; it may not fit. */
int ft_cuda_gemm_tuned(const ft_cuda_device_props *props, const ft_gemm_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
