/*
 * oracle.h - every operation by its formula, in double, not optimized.
 *
 * The reference for the kernels.  Shares no code with them: nothing here includes kernels/.
 * Matrices are row-major doubles; quantized values are integers in double.  Outputs do not overlap
 * inputs unless stated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_OPS_ORACLE_H
#define FT_TESTS_LIB_OPS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a half-precision pattern: 1-5-10 or 1-8-7 bits. */
double oracle_f16(uint16_t bits);
double oracle_bf16(uint16_t bits);

/* "none", "gelu", "gelu_approx", "gelu_tanh", "relu", "tanh", "silu"; NaN for another word. */
double oracle_activation(const char *name, double x);

/* value / scale rounded to the nearest integer, ties to even, clamped to -127..127. */
double oracle_quantize(double value, double scale);

/*
 * y [m, n] = x [m, k] . w [n, k]^T + bias [n]; bias may be NULL.  `size`, if not NULL, receives
 * the sums of magnitudes of the terms: the measure of rounding errors.
 */
void oracle_linear(double *y, double *size, const double *x, const double *w, const double *bias,
                   size_t m, size_t n, size_t k);

/* One row: (x - mean) / sqrt(variance + eps) * weight + bias. */
void oracle_norm(double *y, const double *x, const double *weight, const double *bias, double eps,
                 size_t n);

/* One row: exp(scale * x - max) divided by their sum; y may be x. */
void oracle_softmax(double *y, const double *x, double scale, size_t n);

/* One row divided by its Euclidean norm; a row of zeros stays zero. */
void oracle_normalize(double *y, const double *x, size_t n);

/* Attention within each of the sequences start[i] .. start[i + 1] - 1. */
typedef struct oracle_attention {
    const double *q, *k, *v; /* [start[sequences], cols] */
    const int32_t *start;
    size_t sequences, heads, cols;
    double score_scale; /* scores are multiplied by it before softmax */
    double value_scale; /* the context is multiplied by it */
    bool quantized; /* quantizes a row's probabilities, the largest to 127, divided by their sum */
    double *doubt;  /* with quantized, see oracle_attend(); or NULL */
} oracle_attention;

/*
 * context [tokens, cols].  `probs`, if not NULL, receives the probabilities (or their quantized
 * values): for each sequence, head and query a row of the sequence's length, in this order.
 * `doubt` [tokens, cols] receives how far the context may move if values within 0.05 of the middle
 * between two integers are rounded to the other one.
 */
void oracle_attend(double *context, double *probs, const oracle_attention *a);

/* The number of probabilities that oracle_attend() writes. */
size_t oracle_probabilities(const oracle_attention *a);

/*
 * Writes int8 values [n, k] in the layout COL4_4R2_8C, from the first byte of the result to the
 * last; padding becomes `pad`.  Returns the bytes written (or, with out NULL, needed).
 */
size_t oracle_col4(int8_t *out, const int8_t *quantized, size_t n, size_t k, int8_t pad);

#endif
