/*
 * activation.h - the scalar definition of every activation, for host and device.
 *
 * The vector kernels do the same operations in the same order, so that all of them return the same
 * bits.  Products and sums that belong together are fused explicitly, the others stand alone: no
 * compiler may contract anything here.
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
    FT_ACT_GELU,        /* v * Phi(v), by the error function */
    FT_ACT_GELU_APPROX, /* the same, as exact as a result needs to be that becomes codes */
    FT_ACT_GELU_TANH,   /* v / 2 * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 v^3))) */
    FT_ACT_RELU,
    FT_ACT_TANH,
    FT_ACT_SILU, /* v / (1 + exp(-v)) */
} ft_activation;

/*
 * e^x = 2^n * e^r with |r| <= ln(2) / 2: a minimax polynomial of degree 6 in r, highest power
 * first; ln(2) in two parts, for r is a small difference.
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
 * Phi(v) = 1/2 + u P(2 u^2 - 1) with u = v / 5.1 held in [-1, 1], P of degree 12, highest power
 * first.  Minimises |v| times the error of Phi, under the condition P(1) = 1/2: beyond the ends Phi
 * is exactly 0 and 1.
 */
#define FT_GELU_POLYNOMIAL                                                                         \
    {                                                                                              \
        0x1.10ef9cp-8f, -0x1.6742c0p-7f, 0x1.5b0ff6p-7f, -0x1.d5cdd0p-7f, 0x1.27d5b6p-5f,          \
            -0x1.01e51cp-4f, 0x1.6bb8cep-4f, -0x1.f3829ep-4f, 0x1.4b498ep-3f, -0x1.a43712p-3f,     \
            0x1.09361ep-2f, -0x1.685c3ap-2f, 0x1.69ed14p-1f                                        \
    }
#define FT_GELU_RANGE 0.196078435f /* 1 / 5.1 */

/*
 * The short form for results that become codes: Phi(v) = 1/2 + v P(v^2) held in [0, 1], P of degree
 * 4, highest power first.  Minimises |v| times the error of Phi, by linear programs over a grid;
 * above where Phi is that close to 1 the polynomial may be too large, but never too small, since a
 * GPU holds a result in [0, 1] for nothing.  So there are seven operations, none of them a
 * comparison, where the form above takes nineteen: in the epilogue of a product of depth 768 a GPU
 * has no more.  Codes of a range of +-3 are 22 times as far apart as the error.
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
 * leaves the whole number in the low bits of the mantissa: of roundings and conversions a GPU does
 * one where it does eight additions.
 */
FT_HOST_DEVICE float ft_exp_bounded(float x)
{
    const float c[] = FT_EXP_POLYNOMIAL;
    float whole = x * FT_LOG2_E + FT_ROUND_MAGIC;
    float n = whole - FT_ROUND_MAGIC;
    float r = fmaf(n, -FT_LN2_LOW, fmaf(n, -FT_LN2_HIGH, x));
    float p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, r, c[i]);
    uint32_t bits, power; /* p lies in [0.7, 1.42]: the power of two is added to its exponent */
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &whole, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

/* Relative error below 1e-7; arguments beyond the range of normal numbers are held at its ends. */
FT_HOST_DEVICE float ft_exp(float x)
{
    x = x < FT_EXP_MAX ? x : FT_EXP_MAX;
    x = x > FT_EXP_MIN ? x : FT_EXP_MIN;
    return ft_exp_bounded(x);
}

/* Absolute error below 1.5e-6 everywhere, as long as |v| < 5.1, and then exactly v or -0. */
FT_HOST_DEVICE float ft_gelu(float v)
{
    const float c[] = FT_GELU_POLYNOMIAL;
    float u = v * FT_GELU_RANGE;
    u = u < 1.0f ? u : 1.0f;
    u = u > -1.0f ? u : -1.0f;
    float t = fmaf(u * u, 2.0f, -1.0f);
    float p = c[0];
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, t, c[i]);
    return v * fmaf(u, p, 0.5f);
}

/* x held in [0, 1]; 0 where x is NaN. */
FT_HOST_DEVICE float ft_saturate(float x)
{
#ifdef __CUDA_ARCH__
    return __saturatef(x); /* part of the instruction before it */
#else
    x = x > 0.0f ? x : 0.0f;
    return x < 1.0f ? x : 1.0f;
#endif
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

/* NaN stays NaN: what is no number shall not become a class. */
FT_HOST_DEVICE float ft_relu(float v)
{
    return !(v <= 0.0f) ? v : 0.0f;
}

/* Absolute error below 2e-7.  NaN where v is NaN or infinite, by the difference, which else is 0.
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
