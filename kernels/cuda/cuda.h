/*
 * cuda.h - launchers of the CUDA backend's kernels, for C.
 *
 * Pointers are to device memory; `stream` is a cudaStream_t.  A launcher never synchronizes and
 * never allocates; it returns cudaError_t as int, 0 for success.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CUDA_H
#define FT_KERNELS_CUDA_CUDA_H

#include "runtime/ft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* codes[i] = ft_quantize(x[i], inverse_scale), n elements. */
int ft_cuda_quantize(void *stream, int8_t *codes, const float *x, float inverse_scale, size_t n);

/* out[i] = codes[i] * scale, n elements. */
int ft_cuda_dequantize(void *stream, float *out, const int8_t *codes, float scale, size_t n);

/*
 * Move an int8 matrix [rows, cols] from one layout to another; out has ft_layout_bytes(to, ...)
 * bytes, and its pads become zeros.
 */
int ft_cuda_relayout(void *stream, int8_t *out, ft_layout to, const int8_t *in, ft_layout from,
                     size_t rows, size_t cols);

#ifdef __cplusplus
}
#endif
#endif
