/*
 * launch.h - launchers of the kernels of this folder: one thread for each index below `count`.
 *
 * They neither allocate nor synchronize, and return a cudaError_t as int, 0 on success.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_QUANTIZE_LAUNCH_H
#define FT_KERNELS_CUDA_QUANTIZE_LAUNCH_H

#include "kernels/cuda/quantize/descent.h"
#include "kernels/cuda/quantize/hessian.h"
#include "kernels/cuda/quantize/input_sums.h"
#include "kernels/cuda/quantize/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define X(name, threads)                                                                           \
    int ft_cuda_launch_##name(void *stream, const ft_cuda_##name##_args *args, size_t count);
#include "kernels/cuda/quantize/kernels.def"
#undef X

/* The Cholesky factor of one diagonal block, in place. */
int ft_cuda_launch_cholesky(void *stream, const ft_cuda_cholesky_args *args);

#ifdef __cplusplus
}
#endif

#endif
