/*
 * gemm_i8.h - int8 GEMM with a fused epilogue, reading weights in place from the COL4_4R2_8C
 * layout.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_INT8_GEMM_I8_H
#define FT_KERNELS_CPU_GEMM_INT8_GEMM_I8_H

#include "kernels/activation.h"
#include "kernels/cpu/base/isa.h"

/*
 * y = epilogue((x - x_zero) . w^T). The exact int32 accumulator of each element becomes
 *
 *   v = ft_dequantize(acc, x_scale * w_scale[col], bias[col]), or with x_scales[row]
 *   v = activation(v), v = v + residual
 *   y = v, v rounded to F16, or ft_quantize(v, out_inverse)
 *
 * Every instruction set and every number of threads gives the same bytes.
 *
 *   x  [m, k]  int8 in -127..127, rows x_stride bytes apart
 *   w  [n, k]  int8 in COL4_4R2_8C, 64-byte aligned, read-only; padding may hold anything
 *   y  [m, n]  of y_dtype, rows y_stride elements apart
 *
 * |acc| < 2^31 needs k <= 130000, or half of that if x_zero is not 0. The caller owns all memory.
 * m, n, k are at least 1.
 */
typedef struct ft_gemm_i8 {
    ft_isa isa; /* from ft_cpu_isa() */
    int threads;
    size_t m, n, k;
    const int8_t *x;
    size_t x_stride;
    int8_t x_zero; /* zero point of x */
    const int8_t *w;
    float x_scale;         /* per tensor, or ... */
    const float *x_scales; /* ... [m] per row; NULL: x_scale */
    const float *w_scale;  /* [n], per output channel */
    const float *bias;     /* [n], or NULL */
    ft_activation activation;
    const float *residual; /* [m, n], or NULL; may alias y if y is float */
    size_t residual_stride;
    ft_dtype y_dtype;  /* FT_I8: quantized; FT_F32 or FT_F16: float */
    float out_inverse; /* FT_I8: 1 / scale of y; positive */
    void *y;
    size_t y_stride;
    void *scratch; /* 64-byte aligned, uninitialized */
    size_t scratch_bytes;
} ft_gemm_i8;

/*
 * Scratch bytes that suffice for every GEMM of at most this size with at most that many threads, on
 * every instruction set; SIZE_MAX if that overflows a size_t.
 */
size_t ft_gemm_i8_scratch(size_t m, size_t n, size_t k, int threads);

/*
 * Whether m rows are few enough for the kernel that streams the weights instead of packing panels.
 */
bool ft_gemm_i8_streams(ft_isa isa, size_t m);

void ft_gemm_i8_run(const ft_gemm_i8 *gemm);

#endif
