/*
 * fused_kernels.h - launchers of fused operations (kernels/fused_ops.h).
 *
 * They launch nothing and return cudaErrorNotSupported where no kernel fuses the whole chain, or
 * where the separate kernels are faster. Intermediate values of a chain are not written to memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_FUSED_KERNELS_H
#define FT_KERNELS_CUDA_FUSED_KERNELS_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Up to FT_CUDA_MAX_FUSED linears of one input, with the norm that produces it, the gate that
 * multiplies two outputs, or both; NULL: absent. The norm's second output (the residual sum) is
 * written.
 */
int ft_cuda_norm_linear_gate(const ft_cuda_args *norm, const ft_cuda_args *const *linears,
                             int count, const ft_cuda_args *gate);

/* Store keys and values in the KV cache and attend to it in one kernel. */
int ft_cuda_store_attend(const ft_cuda_args *store, const ft_cuda_args *attend);

#ifdef __cplusplus
}
#endif
#endif
