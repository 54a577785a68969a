/*
 * gemv_fused.h - INT8 GEMV of one row, fused with the operation that quantizes the row and the gate
 * of its results (decode step).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_GEMV_FUSED_H
#define FT_KERNELS_CUDA_GEMM_INT8_GEMV_FUSED_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ft_gemv_source {
    FT_GEMV_NORM,    /* RMS norm of an F32 row */
    FT_GEMV_VALUES,  /* an F16 row */
    FT_GEMV_PRODUCTS /* an F32 row with the magnitudes of its parts */
} ft_gemv_source;

/* The row before quantization; x and x_scales of the GEMV are not read. */
typedef struct ft_gemv_input {
    ft_gemv_source source;
    const void *x; /* [k] */

    /* FT_GEMV_NORM */
    const float *residual; /* [k], or NULL */
    float *sum;            /* x + residual, an output, or NULL */
    const float *weight;   /* [k] */
    float eps;

    /* FT_GEMV_PRODUCTS */
    const float *amax; /* the largest magnitude of each part */
    int parts;         /* at most FT_GEMV_MAX_PARTS */
} ft_gemv_input;

enum { FT_GEMV_MAX_PARTS = 256 };

/*
 * Instead of two outputs of the same width: act(first) * second in F32, after rounding both to F16,
 * and the largest magnitude of each thread block.
 */
typedef struct ft_gemv_gate {
    ft_activation activation;
    float *products; /* [width] */
    float *amax;     /* [ft_cuda_gemv_gate_parts()] */
} ft_gemv_gate;

/* Whether the kernel supports this GEMV; gate NULL: none. */
bool ft_cuda_gemv_fused_supports(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p,
                                 const ft_gemv_input *input, const ft_gemv_gate *gate);

/* Thread blocks of a GEMV with a gate. */
int ft_cuda_gemv_gate_parts(const ft_cuda_device_props *props, const ft_cuda_gemm_args *p);

/* Returns the same bits as the separate operations. */
int ft_cuda_gemv_fused(const ft_cuda_device_props *props, void *stream, const ft_cuda_gemm_args *p,
                       const ft_gemv_input *input, const ft_gemv_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
