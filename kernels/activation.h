/*
 * activation.h - the scalar definition of every activation, for host and device.
 *
 * Vectorized kernels do the same operations in the same order, so that all return the same bits.
 * Fused multiply-adds are written as fmaf().  The compiler must not contract any other expression.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_ACTIVATION_H
#define FT_KERNELS_ACTIVATION_H

#include "kernels/layout.h"

#include <math.h>
#include <string.h>

typedef enum ft_activation {
    FT_ACT_NONE,
    FT_ACT_GELU,        /* v * Phi(v), Phi the normal distribution function */
    FT_ACT_GELU_APPROX, /* the same, accurate enough for results that are quantized to int8 */
    FT_ACT_GELU_TANH,   /* v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 v^3))) */
    FT_ACT_RELU,
    FT_ACT_TANH,
    FT_ACT_SILU, /* v / (1 + exp(-v)) */
} ft_activation;

/*
 * e^x = 2^n * e^r with |r| <= ln(2) / 2: a minimax polynomial of degree 6 in r, highest power
 * first.  ln(2) is split into a high and a low part, because r is a difference with cancellation.
 */
#define FT_EXP_POLYNOMIAL                                                                          \
    {                                                                                              \
        0.00138145837f, 0.00836872403f, 0.041668389f, 0.166665211f, 0.49999994f, 1.0f, 1.0f        \
    }
#define FT_EXP_MIN (-86.0f)
#define FT_EXP_MAX 88.37f
#define FT_LOG2_E 1.44269504f
#define FT_ROUND_MAGIC 12582912.0f /* 1.5 * 2^23 */
#define FT_LN2_HIGH 0x1.62e430p-1f
#define FT_LN2_LOW (-0x1.05c610p-29f)

/*
 * Phi(v) = 1/2 + v P(v^2 - FT_GELU_CENTER) clamped to [0, 1], P of degree 12, highest power first.
 * P minimizes |v| times the error of Phi, by linear programs over a grid. Where Phi is that close
 * to 1, the polynomial may be too large but never too small, because saturation to [0, 1] costs
 * nothing on GPUs. Powers of a centered argument cancel less than those of v^2.
 */
#define FT_GELU_POLYNOMIAL                                                                         \
    {                                                                                              \
        0x1.bddfeap-56f, -0x1.3253dcp-50f, 0x1.57e242p-46f, -0x1.623338p-42f, 0x1.1dff86p-37f,     \
            -0x1.a1dbeap-33f, 0x1.f3d14ap-29f, -0x1.161c48p-24f, 0x1.29e380p-20f,                  \
            -0x1.331c66p-16f, 0x1.3b2420p-12f, -0x1.5bece2p-8f, 0x1.1beafep-3f                     \
    }
#define FT_GELU_CENTER 13.0f

/*
 * The short form for results that are quantized: the same with v P(v^2), P of degree 4. This takes
 * seven operations; the form above takes fifteen. The epilogue of an int8 GEMM with K = 768 has no
 * time for more. The quantization step of a range of +-3 is 22 times the error.
 */
#define FT_GELU_APPROX_POLYNOMIAL                                                                  \
    {                                                                                              \
        0x1.59e8p-17f, -0x1.acd296p-12f, 0x1.b47308p-8f, -0x1.e88df6p-5f, 0x1.939298p-2f           \
    }

/* gelu by tanh is v / (1 + exp(v * (FT_GELU_TANH_CUBIC * v^2 + FT_GELU_TANH_LINEAR))) */
#define FT_GELU_TANH_LINEAR (-1.59576912f)
#define FT_GELU_TANH_CUBIC (-0.0713548163f)

/*
 * x in [FT_EXP_MIN, FT_EXP_MAX].  Adding 1.5 * 2^23 rounds half to even, as rintf() does, and
 * leaves the integer in the low bits of the mantissa.  On GPUs the throughput of additions is eight
 * times that of rounding and conversion instructions.
 */
FT_HOST_DEVICE float ft_exp_bounded(float x)
{
    const float c[] = FT_EXP_POLYNOMIAL;
    float rounded = x * FT_LOG2_E + FT_ROUND_MAGIC;
    float n = rounded - FT_ROUND_MAGIC;
    float r = fmaf(n, -FT_LN2_LOW, fmaf(n, -FT_LN2_HIGH, x));
    float p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, r, c[i]);
    uint32_t bits, power; /* p is in [0.7, 1.42]: add the power of two to its exponent */
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &rounded, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* Relative error below 1e-7; arguments are clamped to the range of normal results. */
FT_HOST_DEVICE float ft_exp(float x)
{
    x = x < FT_EXP_MAX ? x : FT_EXP_MAX;
    x = x > FT_EXP_MIN ? x : FT_EXP_MIN;
    return ft_exp_bounded(x);
}

/* x clamped to [0, 1]; 0 for NaN. */
FT_HOST_DEVICE float ft_saturate(float x)
{
#ifdef __CUDA_ARCH__
    return __saturatef(x); /* a modifier of the previous instruction */
#else
    x = x > 0.0f ? x : 0.0f;
    return x < 1.0f ? x : 1.0f;
#endif
}

/* Absolute error below 1.5e-6; for |v| > 5.2 exactly v or -0. */
FT_HOST_DEVICE float ft_gelu(float v)
{
    const float c[] = FT_GELU_POLYNOMIAL;
    float t = fmaf(v, v, -FT_GELU_CENTER);
    float p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, t, c[i]);
    return v * ft_saturate(fmaf(v, p, 0.5f));
}

/* Absolute error below 1.1e-3 everywhere. */
FT_HOST_DEVICE float ft_gelu_approx(float v)
{
    const float c[] = FT_GELU_APPROX_POLYNOMIAL;
    float t = v * v;
    float p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, t, c[i]);
    return v * ft_saturate(fmaf(v, p, 0.5f));
}

FT_HOST_DEVICE float ft_gelu_tanh(float v)
{
    float slope = fmaf(v * v, FT_GELU_TANH_CUBIC, FT_GELU_TANH_LINEAR);
    return v / (ft_exp(v * slope) + 1.0f);
}

/* NaN stays NaN, so that an invalid input does not yield a valid class. */
FT_HOST_DEVICE float ft_relu(float v)
{
    return !(v <= 0.0f) ? v : 0.0f;
}

/* Absolute error below 2e-7.  NaN for NaN and infinite v, because of v - v, which is 0 otherwise.
 */
FT_HOST_DEVICE float ft_tanh(float v)
{
    return 1.0f - 2.0f / (ft_exp(v + v) + 1.0f) + (v - v);
}

FT_HOST_DEVICE float ft_silu(float v)
{
    return v / (ft_exp(-v) + 1.0f);
}

FT_HOST_DEVICE float ft_activate(ft_activation activation, float v)
{
    switch (activation) {
    case FT_ACT_NONE:
        break;
    case FT_ACT_GELU:
        return ft_gelu(v);
    case FT_ACT_GELU_APPROX:
        return ft_gelu_approx(v);
    case FT_ACT_GELU_TANH:
        return ft_gelu_tanh(v);
    case FT_ACT_RELU:
        return ft_relu(v);
    case FT_ACT_TANH:
        return ft_tanh(v);
    case FT_ACT_SILU:
        return ft_silu(v);
    }
    return v;
}

#endif
