/*
 * decode_f16.h - f16 and bf16 GEMV of one row on sm_90a, fused with the norm before and the gate
 * after it (decode step).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_F16_DECODE_F16_H
#define FT_KERNELS_CUDA_GEMM_F16_DECODE_F16_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RMSNorm that produces x; x of the GEMVs is not read. Rows have the dtype of x. */
typedef struct ft_decode_f16_norm {
    const void *x, *residual; /* [k]; residual may be NULL */
    void *sum;                /* x + residual, an output, or NULL */
    const float *weight;      /* [k] */
    float eps;
} ft_decode_f16_norm;

/* act(first) * second of two GEMVs of one shape; their own outputs are not written. */
typedef struct ft_decode_f16_gate {
    void *y; /* [n], or NULL: no gate */
    ft_activation activation;
} ft_decode_f16_gate;

/* Whether the kernel supports `count` GEMVs of one x, whose n may differ; gate NULL: none. */
bool ft_cuda_decode_f16_supports(const ft_cuda_device_props *props,
                                 const ft_cuda_float_gemm_args *p, int count,
                                 const ft_decode_f16_norm *norm, const ft_decode_f16_gate *gate);

/* Returns the same bits as norm_block.cu, ft_cuda_f16_wgmma() and elementwise.cu in sequence. */
int ft_cuda_decode_f16(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_float_gemm_args *p, int count, const ft_decode_f16_norm *norm,
                       const ft_decode_f16_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
