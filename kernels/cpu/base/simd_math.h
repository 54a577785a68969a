/*
 * simd_math.h - vector versions of the functions in kernels/activation.h, softmax.h and quant.h,
 * operation by operation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BASE_SIMD_MATH_H
#define FT_KERNELS_CPU_BASE_SIMD_MATH_H

#include "kernels/activation.h"
#include "kernels/cpu/base/simd.h"
#include "kernels/quant.h"
#include "kernels/softmax.h"

FT_INLINE vf vf_polynomial(const float *c, int count, vf x)
{
    vf p = vf_set(c[0]);
    FT_UNROLL
    for (int i = 1; i < count; i++)
        p = vf_fma(p, x, vf_set(c[i]));
    return p;
}

FT_INLINE vf vf_exp(vf x)
{
    static const float c[] = FT_EXP_POLYNOMIAL;
    x = vf_max(vf_min(x, vf_set(FT_EXP_MAX)), vf_set(FT_EXP_MIN));
    vf n = vf_rint(x * vf_set(FT_LOG2_E));
    vf r = vf_fma(n, vf_set(-FT_LN2_LOW), vf_fma(n, vf_set(-FT_LN2_HIGH), x));
    return vf_ldexp(vf_polynomial(c, sizeof c / sizeof c[0], r), n);
}

/* ft_softmax_code(); the last step is exact, as the subtraction and the product there. */
FT_INLINE vf vf_softmax_code(vf below, float step)
{
    static const float c[] = FT_SOFTMAX_CHAIN;
    vf q = vf_max(vf_fma(below, vf_set(-step), vf_set(1.0f)), vf_set(0.0f));
    FT_UNROLL
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        q = vf_fma(q, q, vf_set(c[i]));
    q = vf_fma(q, q, vf_set(FT_SOFTMAX_ROUND));
    return vf_fma(q, vf_set(4.0f), vf_set(-4.0f * FT_SOFTMAX_ROUND));
}

/* Clamped to [0, 1]. */
FT_INLINE vf vf_saturate(vf v)
{
    return vf_min(vf_max(v, vf_set(0.0f)), vf_set(1.0f));
}

FT_INLINE vf vf_gelu(vf v)
{
    static const float c[] = FT_GELU_POLYNOMIAL;
    vf p = vf_polynomial(c, sizeof c / sizeof c[0], vf_fma(v, v, vf_set(-FT_GELU_CENTER)));
    return v * vf_saturate(vf_fma(v, p, vf_set(0.5f)));
}

FT_INLINE vf vf_gelu_approx(vf v)
{
    static const float c[] = FT_GELU_APPROX_POLYNOMIAL;
    vf p = vf_polynomial(c, sizeof c / sizeof c[0], v * v);
    return v * vf_saturate(vf_fma(v, p, vf_set(0.5f)));
}

FT_INLINE vf vf_gelu_tanh(vf v)
{
    vf slope = vf_fma(v * v, vf_set(FT_GELU_TANH_CUBIC), vf_set(FT_GELU_TANH_LINEAR));
    return v / (vf_exp(v * slope) + vf_set(1.0f));
}

FT_INLINE vf vf_tanh(vf v)
{
    return vf_set(1.0f) - vf_set(2.0f) / (vf_exp(v + v) + vf_set(1.0f)) + (v - v);
}

/* The addition turns -0 into 0, and the argument order propagates NaN. */
FT_INLINE vf vf_relu(vf v)
{
    return vf_max(vf_set(0.0f), v + vf_set(0.0f));
}

FT_INLINE vf vf_silu(vf v)
{
    return v / (vf_exp(-v) + vf_set(1.0f));
}

FT_INLINE vf vf_activate(ft_activation activation, vf v)
{
    switch (activation) {
    case FT_ACT_NONE:
        break;
    case FT_ACT_GELU:
        return vf_gelu(v);
    case FT_ACT_GELU_APPROX:
        return vf_gelu_approx(v);
    case FT_ACT_GELU_TANH:
        return vf_gelu_tanh(v);
    case FT_ACT_RELU:
        return vf_relu(v);
    case FT_ACT_TANH:
        return vf_tanh(v);
    case FT_ACT_SILU:
        return vf_silu(v);
    }
    return v;
}

/* value / scale, clamped as in ft_quantize_to_float(), before rounding. */
FT_INLINE vf vf_scale_clamp(vf v, vf inverse_scale)
{
    return vf_max(vf_min(v * inverse_scale, vf_set(FT_QUANT_MAX)), vf_set(-FT_QUANT_MAX));
}

#endif
