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

enum { SUMS = 16 };

/* Sixteen floats, which the compiler keeps in one, two or four registers. */
typedef float vsums __attribute__((vector_size(64)));

static inline vsums load_sums(const float *x)
{
    vsums v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* The first n < 16 elements, padded with zeros. */
static inline vsums load_tail(const float *x, size_t n)
{
    float padded[SUMS] = { 0 };
    for (size_t i = 0; i < n; i++)
        padded[i] = x[i];
    return load_sums(padded);
}

static inline float add_up(vsums v)
{
    float part[SUMS];
    memcpy(part, &v, sizeof part);
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

static float row_sum(const float *x, size_t n)
{
    vsums sum = { 0 };
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        sum += load_sums(x + i);
    if (i < n)
        sum += load_tail(x + i, n - i);
    return add_up(sum);
}

static float row_square_sum(const float *x, size_t n)
{
    vsums sum = { 0 };
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
        vsums v = load_sums(x + i);
        sum += v * v;
    }
    if (i < n) {
        vsums v = load_tail(x + i, n - i);
        sum += v * v;
    }
    return add_up(sum);
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
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = ft_bits_from_float(x[i]) & 0x7fffffff;
        largest = magnitude > largest ? magnitude : largest;
    }
    return ft_float_from_bits(largest);
}

/* The maximum of x; exact in any order. */
static float row_max(const float *x, size_t n)
{
    vf most[VF_PARTS / LANES];
    size_t i = 0;
    FT_UNROLL
    for (size_t part = 0; part < VF_PARTS / LANES; part++)
        most[part] = vf_set(x[0]);
    for (; i + VF_PARTS <= n; i += VF_PARTS) {
        FT_UNROLL
        for (size_t part = 0; part < VF_PARTS / LANES; part++)
            most[part] = vf_max(vf_load(x + i + part * LANES), most[part]);
    }
    float largest = vf_largest(most);
    for (; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* x = exp(x - max) */
static void row_exp(float *x, float max, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(x + i, vf_exp(vf_load(x + i) - vf_set(max)));
    if (i < n) { /* short rows consist of little else */
        float rest[LANES] = { 0 };
        memcpy(rest, x + i, (n - i) * sizeof *x);
        vf_store(rest, vf_exp(vf_load(rest) - vf_set(max)));
        memcpy(x + i, rest, (n - i) * sizeof *x);
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

static float row_softmax_codes(float *x, float step, size_t n)
{
    float most = row_max(x, n), total = 0.0f;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        vf_store(x + i, vf_rint(vf_softmax_code(vf_set(most) - vf_load(x + i), step)));
    for (; i < n; i++)
        x[i] = ft_softmax_code(most - x[i], step);
    for (i = 0; i < n; i++)
        total += x[i]; /* exact: the terms are integers */
    return total;
}

static void row_from_f16(float *restrict out, const uint16_t *restrict in, size_t n)
{
    size_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
        __m128i half;
        memcpy(&half, in + i, sizeof half);
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
    }
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
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        memcpy(out + i, &half, sizeof half);
    }
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

static void row_quantize_i8(int8_t *restrict codes, const float *restrict x, float inverse_scale,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = ft_quantize(x[i], inverse_scale);
}

static void row_quantize_f32(float *codes, const float *x, float inverse_scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = ft_quantize_to_float(x[i], inverse_scale);
}

static void row_dequantize_i8(float *restrict out, const int8_t *restrict codes, float scale,
                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float) codes[i] * scale;
}

static void row_dequantize_f32(float *out, const float *codes, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = codes[i] * scale;
}

static void row_add(float *out, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void row_add_codes_i8(float *out, const float *x, const int8_t *restrict codes, float scale,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf((float) codes[i], scale, x[i]);
}

static void row_add_codes_f32(float *out, const float *x, const float *codes, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf(codes[i], scale, x[i]);
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
    case FT_ACT_GELU_CODES:
        activate_all(out, x, FT_ACT_GELU_CODES, n);
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

static void row_scale_sums(float *restrict out, const int32_t *restrict sums, float scale,
                           const float *restrict row_scale, const float *restrict bias, size_t n)
{
    if (bias == NULL)
        for (size_t i = 0; i < n; i++)
            out[i] = (float) sums[i] * (scale * row_scale[i]);
    else
        for (size_t i = 0; i < n; i++)
            out[i] = ft_dequantize(sums[i], scale * row_scale[i], bias[i]);
}

static bool row_largest(const float *logits, size_t n, float *largest)
{
    float most = -INFINITY, lane[SUMS];
    int strange = 0, other[SUMS] = { 0 };
    size_t whole = n / SUMS * SUMS;
    for (size_t j = 0; j < SUMS; j++)
        lane[j] = -INFINITY;
    for (size_t i = 0; i < whole; i += SUMS)
        for (size_t j = 0; j < SUMS; j++) {
            lane[j] = logits[i + j] > lane[j] ? logits[i + j] : lane[j];
            other[j] |= logits[i + j] != logits[i + j];
        }
    for (size_t i = whole; i < n; i++) {
        most = logits[i] > most ? logits[i] : most;
        strange |= logits[i] != logits[i];
    }
    for (size_t j = 0; j < SUMS; j++) {
        most = lane[j] > most ? lane[j] : most;
        strange |= other[j];
    }
    *largest = most;
    return strange == 0;
}

static uint64_t row_masses(uint32_t *restrict mass, const float *restrict logits, float largest,
                           float slope, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        mass[i] = ft_choice_mass(ft_choice_exponent(logits[i], largest, slope));
    for (size_t i = 0; i < n; i++)
        sum += mass[i];
    return sum;
}

/* clang-format off */
#define FT_ROWS_TABLE                                                                              \
    {                                                                                              \
        .to_float = row_to_float,                                                                  \
        .from_float = row_from_float,                                                              \
        .quantize_i8 = row_quantize_i8,                                                            \
        .quantize_f32 = row_quantize_f32,                                                          \
        .dequantize_i8 = row_dequantize_i8,                                                        \
        .dequantize_f32 = row_dequantize_f32,                                                      \
        .add = row_add,                                                                            \
        .add_codes_i8 = row_add_codes_i8,                                                          \
        .add_codes_f32 = row_add_codes_f32,                                                        \
        .activate = row_activate,                                                                  \
        .norm = row_norm,                                                                          \
        .rms_norm = row_rms_norm,                                                                  \
        .amax = row_amax,                                                                          \
        .softmax = row_softmax,                                                                    \
        .softmax_codes = row_softmax_codes,                                                        \
        .square_sum = row_square_sum,                                                              \
        .largest = row_largest,                                                                    \
        .masses = row_masses,                                                                      \
        .scale_sums = row_scale_sums,                                                              \
    }
/* clang-format on */
