/*
 * rows_impl.h - the body of rows_*.c: plain loops that each file compiles for its own instruction
 * set.
 *
 * Elementwise loops are written for auto-vectorization. Reductions keep 16 partial sums (number i
 * adds elements i, i + 16, ...), which a fixed tree adds; those of a norm have an order of their
 * own (kernels/norm.h). So a result does not depend on the instruction set, and fused and unfused
 * plans agree bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/sampling.h"
#include "kernels/cpu/base/rows.h"
#include "kernels/cpu/base/simd_math.h"
#include "kernels/cpu/base/simd_norm.h"
#include "kernels/half.h"
#include "kernels/quant.h"

#include <math.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

enum { N_PARTIAL = 16 };

/* Sixteen floats, which the compiler keeps in one, two or four registers. */
typedef float vec16 __attribute__((vector_size(64)));

static inline vec16 load_vec16(const float *x)
{
    vec16 v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* The first n < 16 elements, padded with zeros. */
static inline vec16 load_tail(const float *x, size_t n)
{
    float padded[N_PARTIAL] = { 0 };
    for (size_t i = 0; i < n; i++)
        padded[i] = x[i];
    return load_vec16(padded);
}

static inline float reduce_partial(vec16 v)
{
    float partial[N_PARTIAL];
    memcpy(partial, &v, sizeof partial);
    for (int distance = N_PARTIAL / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            partial[i] += partial[i + distance];
    return partial[0];
}

static float row_sum(const float *x, size_t n)
{
    vec16 sum = { 0 };
    size_t i = 0;
    for (; i + N_PARTIAL <= n; i += N_PARTIAL)
        sum += load_vec16(x + i);
    if (i < n)
        sum += load_tail(x + i, n - i);
    return reduce_partial(sum);
}

static float row_square_sum(const float *x, size_t n)
{
    vec16 sum = { 0 };
    size_t i = 0;
    for (; i + N_PARTIAL <= n; i += N_PARTIAL) {
        vec16 v = load_vec16(x + i);
        sum += v * v;
    }
    if (i < n) {
        vec16 v = load_tail(x + i, n - i);
        sum += v * v;
    }
    return reduce_partial(sum);
}

static void row_norm(float *out, const float *x, const float *weight, const float *bias, float eps,
                     size_t n)
{
    float count = (float) n, inverse = 1.0f / count;
    float mean = ft_norm_mean(norm_sum(x, n), count, inverse);
    float variance = ft_norm_mean(norm_square_sum(x, n, mean), count, inverse);
    float factor = ft_norm_factor(variance, eps);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, vf_fma((vf_load(x + i) - vf_set(mean)) * vf_set(factor),
                                 vf_load(weight + i), vf_load(bias + i)));
    for (; i < n; i++)
        out[i] = fmaf((x[i] - mean) * factor, weight[i], bias[i]);
}

static void row_rms_norm(float *out, const float *x, const float *weight, float eps, size_t n)
{
    float count = (float) n, inverse = 1.0f / count;
    float factor = ft_norm_factor(ft_norm_mean(norm_square_sum(x, n, 0.0f), count, inverse), eps);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, vf_load(x + i) * vf_set(factor) * vf_load(weight + i));
    for (; i < n; i++)
        out[i] = x[i] * factor * weight[i];
}

/* Magnitudes are compared as bit patterns, which have the same order, with NaN above all. */
static float row_amax(const float *x, size_t n)
{
    uint32_t max_x = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = ft_bits_from_float(x[i]) & 0x7fffffff;
        max_x = magnitude > max_x ? magnitude : max_x;
    }
    return ft_float_from_bits(max_x);
}

/* The maximum of x; exact in any order. */
static float row_max(const float *x, size_t n)
{
    vf max_v[VF_REDUCE_WIDTH / LANES];
    size_t i = 0;
    FT_UNROLL
    for (size_t partial = 0; partial < VF_REDUCE_WIDTH / LANES; partial++)
        max_v[partial] = vf_set(x[0]);
    for (; i + VF_REDUCE_WIDTH <= n; i += VF_REDUCE_WIDTH) {
        FT_UNROLL
        for (size_t partial = 0; partial < VF_REDUCE_WIDTH / LANES; partial++)
            max_v[partial] = vf_max(vf_load(x + i + partial * LANES), max_v[partial]);
    }
    float max_x = vf_reduce_max(max_v);
    for (; i < n; i++)
        max_x = x[i] > max_x ? x[i] : max_x;
    return max_x;
}

/* x = exp(x - max) */
static void row_exp(float *x, float max, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(x + i, vf_exp(vf_load(x + i) - vf_set(max)));
    if (i < n) { /* short rows consist of little else */
        float tail[LANES] = { 0 };
        memcpy(tail, x + i, (n - i) * sizeof *x);
        vf_store(tail, vf_exp(vf_load(tail) - vf_set(max)));
        memcpy(x + i, tail, (n - i) * sizeof *x);
    }
}

static void row_softmax(float *x, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
    float max = row_max(x, n);
    row_exp(x, max, n);
    float factor = 1.0f / row_sum(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] *= factor;
}

static float row_softmax_quantize(float *x, float step, size_t n)
{
    float max_v = row_max(x, n), q_sum = 0.0f;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(x + i, vf_softmax_code(vf_set(max_v) - vf_load(x + i), step));
    for (; i < n; i++)
        x[i] = ft_softmax_code(max_v - x[i], step);
    for (i = 0; i < n; i++)
        q_sum += x[i]; /* exact: the terms are integers */
    return q_sum;
}

static void row_from_f16(float *restrict out, const uint16_t *restrict in, size_t n)
{
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
        __m128i distance;
        memcpy(&distance, in + i, sizeof distance);
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(distance));
    }
#elif defined __aarch64__ && !defined FT_SIMD_SCALAR
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, vf_load_f16(in + i));
#endif
    for (; i < n; i++)
        out[i] = ft_float_from_f16(in[i]);
}

static void row_to_float(float *out, const void *in, ft_dtype dtype, size_t n)
{
    if (dtype == FT_F16)
        row_from_f16(out, in, n);
    else if (dtype == FT_BF16)
        for (size_t i = 0; i < n; i++)
            out[i] = ft_float_from_bf16(((const uint16_t *) in)[i]);
    else
        memcpy(out, in, n * sizeof *out);
}

static void row_to_f16(uint16_t *restrict out, const float *restrict in, size_t n)
{
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
        __m128i distance = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        memcpy(out + i, &distance, sizeof distance);
    }
#elif defined __aarch64__ && !defined FT_SIMD_SCALAR
    for (; i + LANES <= n; i += LANES)
        vf_store_f16(out + i, vf_load(in + i));
#endif
    for (; i < n; i++)
        out[i] = ft_f16_from_float(in[i]);
}

static void row_from_float(void *out, const float *in, ft_dtype dtype, size_t n)
{
    if (dtype == FT_F16)
        row_to_f16(out, in, n);
    else if (dtype == FT_BF16)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *) out)[i] = ft_bf16_from_float(in[i]);
    else
        memcpy(out, in, n * sizeof *in);
}

static void row_quantize_i8(int8_t *restrict q, const float *restrict x, float inverse_scale,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        q[i] = ft_quantize(x[i], inverse_scale);
}

static void row_quantize_f32(float *q, const float *x, float inverse_scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        q[i] = ft_quantize_to_float(x[i], inverse_scale);
}

static void row_dequantize_i8(float *restrict out, const int8_t *restrict q, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float) q[i] * scale;
}

static void row_dequantize_f32(float *out, const float *q, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = q[i] * scale;
}

static void row_add(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void row_multiply(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] * b[i];
}

static void row_add_dequantized_i8(float *out, const float *x, const int8_t *restrict q,
                                   float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf((float) q[i], scale, x[i]);
}

static void row_add_dequantized_f32(float *out, const float *x, const float *q, float scale,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf(q[i], scale, x[i]);
}

/* A constant activation removes the branch from the loop. */
FT_INLINE void activate_all(float *out, const float *x, ft_activation activation, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(out + i, vf_activate(activation, vf_load(x + i)));
    for (; i < n; i++)
        out[i] = ft_activate(activation, x[i]);
}

static void row_activate(float *out, const float *x, ft_activation activation, size_t n)
{
    switch (activation) {
    case FT_ACT_NONE:
        if (out != x)
            memcpy(out, x, n * sizeof *out);
        break;
    case FT_ACT_GELU:
        activate_all(out, x, FT_ACT_GELU, n);
        break;
    case FT_ACT_GELU_APPROX:
        activate_all(out, x, FT_ACT_GELU_APPROX, n);
        break;
    case FT_ACT_GELU_TANH:
        activate_all(out, x, FT_ACT_GELU_TANH, n);
        break;
    case FT_ACT_RELU:
        activate_all(out, x, FT_ACT_RELU, n);
        break;
    case FT_ACT_TANH:
        activate_all(out, x, FT_ACT_TANH, n);
        break;
    case FT_ACT_SILU:
        activate_all(out, x, FT_ACT_SILU, n);
        break;
    }
}

static void row_dequantize_acc(float *restrict out, const int32_t *restrict acc, float scale,
                               const float *restrict row_scale, const float *restrict bias,
                               size_t n)
{
    if (bias == NULL)
        for (size_t i = 0; i < n; i++)
            out[i] = (float) acc[i] * (scale * row_scale[i]);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = ft_dequantize(acc[i], scale * row_scale[i], bias[i]);
}

static bool row_max_logit(const float *logits, size_t n, float *max_x)
{
    float max_v = -INFINITY, partial_max[N_PARTIAL];
    int has_nan = 0, partial_nan[N_PARTIAL] = { 0 };
    size_t n_full = n / N_PARTIAL * N_PARTIAL;
    for (size_t j = 0; j < N_PARTIAL; j++)
        partial_max[j] = -INFINITY;
    for (size_t i = 0; i < n_full; i += N_PARTIAL)
        for (size_t j = 0; j < N_PARTIAL; j++) {
            partial_max[j] = logits[i + j] > partial_max[j] ? logits[i + j] : partial_max[j];
            partial_nan[j] |= logits[i + j] != logits[i + j];
        }
    for (size_t i = n_full; i < n; i++) {
        max_v = logits[i] > max_v ? logits[i] : max_v;
        has_nan |= logits[i] != logits[i];
    }
    for (size_t j = 0; j < N_PARTIAL; j++) {
        max_v = partial_max[j] > max_v ? partial_max[j] : max_v;
        has_nan |= partial_nan[j];
    }
    *max_x = max_v;
    return has_nan == 0;
}

static uint64_t row_fixed_probs(uint32_t *restrict prob, const float *restrict logits, float max_x,
                                float slope, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        prob[i] = ft_sampling_fixed_prob(ft_sampling_exponent(logits[i], max_x, slope));
    for (size_t i = 0; i < n; i++)
        sum += prob[i];
    return sum;
}

/* clang-format off */
#define FT_ROW_KERNELS                                                                              \
    {                                                                                              \
        .to_float = row_to_float,                                                                  \
        .from_float = row_from_float,                                                              \
        .quantize_i8 = row_quantize_i8,                                                            \
        .quantize_f32 = row_quantize_f32,                                                          \
        .dequantize_i8 = row_dequantize_i8,                                                        \
        .dequantize_f32 = row_dequantize_f32,                                                      \
        .add = row_add,                                                                            \
        .multiply = row_multiply,                                                                  \
        .add_dequantized_i8 = row_add_dequantized_i8,                                                          \
        .add_dequantized_f32 = row_add_dequantized_f32,                                                        \
        .activate = row_activate,                                                                  \
        .norm = row_norm,                                                                          \
        .rms_norm = row_rms_norm,                                                                  \
        .amax = row_amax,                                                                          \
        .softmax = row_softmax,                                                                    \
        .softmax_quantize = row_softmax_quantize,                                                        \
        .square_sum = row_square_sum,                                                              \
        .max_logit = row_max_logit,                                                                    \
        .fixed_probs = row_fixed_probs,                                                                      \
        .dequantize_acc = row_dequantize_acc,                                                              \
    }
/* clang-format on */
