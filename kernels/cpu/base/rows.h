/*
 * rows.h - kernels for one row of floats or quantized values, compiled once per instruction set.
 *
 * All instruction sets give identical bits: elements are independent, sums have a fixed order, and
 * floating-point contraction is off.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_ROWS_H
#define FT_KERNELS_CPU_BASE_ROWS_H

#include "kernels/activation.h"
#include "kernels/cpu/base/isa.h"

typedef struct ft_row_kernels {
    /* F32, F16 or BF16 to float; `in` needs only the alignment of its dtype. */
    void (*to_float)(float *out, const void *in, ft_dtype dtype, size_t n);

    /*
     * The reverse; F16 and BF16 round half to even, and overflow to infinity.
     */
    void (*from_float)(void *out, const float *in, ft_dtype dtype, size_t n);

    /* Quantizes x to int8, or to integers stored as float. */
    void (*quantize_i8)(int8_t *q, const float *x, float inverse_scale, size_t n);
    void (*quantize_f32)(float *q, const float *x, float inverse_scale, size_t n);

    /* out = scale * q. */
    void (*dequantize_i8)(float *out, const int8_t *q, float scale, size_t n);
    void (*dequantize_f32)(float *out, const float *q, float scale, size_t n);

    void (*add)(float *out, const float *a, const float *b, size_t n);
    void (*multiply)(float *out, const float *a, const float *b, size_t n);

    /* out = x + scale * q, rounded once; out may alias x, or q where that is float. */
    void (*add_dequantized_i8)(float *out, const float *x, const int8_t *q, float scale, size_t n);
    void (*add_dequantized_f32)(float *out, const float *x, const float *q, float scale, size_t n);

    void (*activate)(float *out, const float *x, ft_activation activation, size_t n);

    /* (x - mean) / sqrt(variance + eps) * weight + bias, as in kernels/norm.h; out may alias x. */
    void (*norm)(float *out, const float *x, const float *weight, const float *bias, float eps,
                 size_t n);

    /* x * factor * weight, where factor = 1 / sqrt(mean of x^2 + eps); out may alias x. */
    void (*rms_norm)(float *out, const float *x, const float *weight, float eps, size_t n);

    /* The largest magnitude; NaN if x contains one. */
    float (*amax)(const float *x, size_t n);

    /* x = softmax(scale * x), in place. */
    void (*softmax)(float *x, float scale, size_t n);

    /* Int8 scores become ft_softmax_code(max - x, step), in place; returns their sum. */
    float (*softmax_quantize)(float *x, float step, size_t n);

    /* The sum of x[i] * x[i]. */
    float (*square_sum)(const float *x, size_t n);

    /* Stores the largest logit in *max_logit, -inf if n is 0; returns false if a logit is NaN. */
    bool (*max_logit)(const float *logits, size_t n, float *max_logit);

    /*
     * ft_sampling_fixed_prob() of each logit, an unnormalized fixed-point probability; returns
     * their sum.
     */
    uint64_t (*fixed_probs)(uint32_t *prob, const float *logits, float max_logit, float slope,
                            size_t n);

    /* out[i] = acc[i] * (scale * row_scale[i]) + bias[i]; bias may be NULL. */
    void (*dequantize_acc)(float *out, const int32_t *acc, float scale, const float *row_scale,
                           const float *bias, size_t n);
} ft_row_kernels;

/* The row kernels of a supported instruction set. */
const ft_row_kernels *ft_row_kernels_for(ft_isa isa);

#endif
