/*
 * onednn.h - the int8 and the float matmul of oneDNN, baselines for FT's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_BENCH_ONEDNN_H
#define FT_TESTS_BENCH_ONEDNN_H

#include "kernels/cpu/gemm/int8/gemm_i8.h"

/* One matmul for any number of weight sets, in the layout that oneDNN prefers. */
typedef struct onednn onednn;

/*
 * The matmul that `gemm` describes (activation NONE or GELU); `weights` holds `sets` row-major
 * matrices [n, k], which are reordered here.  Ends the program if oneDNN fails.
 */
onednn *onednn_new(const ft_gemm_i8 *gemm, const int8_t *const *weights, size_t sets);
void onednn_free(onednn *product);

/* Uses the number of threads of OpenMP. */
void onednn_run(onednn *product, const ft_gemm_i8 *gemm, size_t set);

/* y [m, n] = x [m, k] . w^T for `sets` copies of w [n, k], each in the layout that oneDNN prefers.
 */
onednn *onednn_f32_new(size_t m, size_t n, size_t k, const float *weights, size_t sets);
void onednn_f32_run(onednn *product, const float *x, float *y, size_t set);

#endif
