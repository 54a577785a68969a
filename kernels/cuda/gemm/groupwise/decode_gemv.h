/*
 * decode_gemv.h - GEMV with group-wise quantized weights for one or two rows, fused with the norm
 * before and the gate after it (decode step).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_H
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_DECODE_GEMV_H

#include "kernels/cuda/gemm/groupwise/groupwise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RMSNorm that produces x; x of the GEMV is ignored. Rows have the dtype of x. */
typedef struct ft_cuda_groupwise_norm {
    const void *from, *residual; /* [1, k]; residual may be NULL */
    void *sum;                   /* residual sum, an output; NULL without a residual */
    const float *weight;         /* [k] */
    float eps, cols, inverse_cols;
} ft_cuda_groupwise_norm;

/*
 * Gate of two linears: act(first) * second, [m, rows] of y's dtype; their own outputs are not
 * written.
 */
typedef struct ft_cuda_groupwise_gate {
    void *y;
    ft_activation activation;
} ft_cuda_groupwise_gate;

/* Whether a kernel supports this GEMV, with the norm and gate that are not NULL. */
bool ft_cuda_groupwise_decode_gemv_supports(const ft_cuda_device_props *props,
                                            const ft_cuda_groupwise_args *p,
                                            const ft_cuda_groupwise_norm *norm,
                                            const ft_cuda_groupwise_gate *gate);

/* Maximum m per launch. */
size_t ft_cuda_groupwise_decode_gemv_max_m(void);

/*
 * Returns the same bits as norm_block.cu, any other group-wise kernel, and elementwise.cu in
 * sequence.
 */
int ft_cuda_groupwise_decode_gemv(const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_groupwise_args *p,
                                  const ft_cuda_groupwise_norm *norm,
                                  const ft_cuda_groupwise_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
