/*
 * gemm_int8.h - int8 GEMM problems for tests: operands on host and device, and their exact sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_CUDA_GEMM_INT8_H
#define FT_TESTS_CUDA_GEMM_INT8_H

#include "kernels/cuda/cuda.h"

/* ANY: -127..127; EXTREME: -127 and 127 only, so that sums grow as far as they can. */
typedef enum problem_quantized { ANY_CODES, EXTREME_CODES } problem_quantized;

typedef struct problem {
    size_t m, n, k;
    int8_t *x, *w_row, *w; /* w_row [n, k] row-major, w the same in COL4_4R2_8C */
    float x_scale, *x_scales, *w_scale, *bias, *residual;
    uint16_t *residual_half;
    int32_t *sums; /* [m, n], after problem_sum() */
    int8_t *dev_x, *dev_w, *dev_tiles;
    float *dev_x_scales, *dev_w_scale, *dev_bias, *dev_residual;
    uint16_t *dev_residual_half;
    void *blas, *dev_scratch;
    size_t scratch_bytes;
} problem;

/* Random operands, on host and device.  The padding of w holds arbitrary bytes. */
problem open_problem(const ft_cuda_device_props *props, void *blas, size_t m, size_t n, size_t k,
                     problem_quantized quantized);
void close_problem(problem *q);

/* Computes the exact sums with a scalar loop. */
void problem_sum(problem *q);

int8_t *problem_random_int8(size_t n);
float *problem_floats(const int8_t *quantized, size_t n);

/* 1 / scale of each output matrix. */
float inverse_of_part(int part);

/* The device and a cuBLAS handle for it; skips all tests where there is none. */
ft_cuda_device_props open_gpu(void **blas);

void *upload(const void *data, size_t bytes);
void download(void *data, const void *memory, size_t bytes);

#endif
