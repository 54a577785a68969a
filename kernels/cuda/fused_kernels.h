/*
 * fused_kernels.h - chains of operations (kernels/fused_ops.h) that have kernels.
 *
 * They return cudaErrorNotSupported, and launch nothing, where no kernel does all of it, or none
 * that is faster than a kernel for each operation.  What a chain makes for itself is not written.
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
 * Up to FT_CUDA_PARTS linears of one input, behind the norm that makes it, or before the gate of
 * the two, or both; NULL: there is none.  Norm's `second` is written.
 */
int ft_cuda_linear_chain(const ft_cuda_args *norm, const ft_cuda_args *const *linears, int count,
                         const ft_cuda_args *gate);

/* Keys and values go to the cache, and queries attend to it. */
int ft_cuda_store_attend(const ft_cuda_args *store, const ft_cuda_args *attend);

#ifdef __cplusplus
}
#endif
#endif
