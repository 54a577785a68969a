/*
 * softmax.h - the softmax of int8 attention, for all backends.
 *
 * A row of exact integer scores s_j with maximum M yields quantized probabilities and their sum:
 *
 *     p_j = round(127 * e^((s_j - M) * score_scale))    0 .. 127, and 127 for the maximum
 *     P   = sum of p_j
 *     context = (sum of p_j * v_j) * (scale of v / P)
 *
 * Each row thus has its own probability scale, 1 / P.  A static scale from calibration would have
 * to fit rows with one large probability as well as rows with 384 small ones, and would need the
 * sum of the exponentials before the first quantized value, i.e. one more pass over the keys.  Here
 * all sums are integers, so that the result does not depend on the order of the keys, and only M
 * must be known in advance.
 *
 * The exponential is only as accurate as its quantization needs, and has no integer part to split
 * off: with u = 1 - (M - s) * step, clamped to at least 0, and step = score_scale * 0.1057,
 *
 *     q0 = u,  q1 = q0^2 + c0,  q2 = q1^2 + c1,  q3 = q2^2 + c2,  127 e^(s - M) = 4 q3^2
 *
 * with an absolute error of at most 0.040 quantization steps.  Each square with its constant is one
 * fused multiply-add, and the last one rounds: q3^2 + 1.5 * 2^21 is a multiple of 1/4, whose lowest
 * byte is p.  The chain is increasing, so that quantized probabilities have the order of their
 * scores.  At u = 0 it is 0.041, which rounds to 0, as do all smaller values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SOFTMAX_H
#define FT_KERNELS_SOFTMAX_H

#include "kernels/activation.h"

/* The decrement of u per unit of the exponent, and c0, c1, c2. */
#define FT_SOFTMAX_SLOPE 0x1.b10e08p-4f
#define FT_SOFTMAX_CHAIN                                                                           \
    {                                                                                              \
        0x1.509f04p-2f, 0x1.76f29cp-1f, -0x1.35f7f4p-1f                                            \
    }

/* Floats from here to twice as much are multiples of 1/4; their lowest bits count the quarters. */
#define FT_SOFTMAX_ROUND 0x1.8p21f

/* The factor of integer scores: a product of the scales of query and key, then that of the softmax.
 */
FT_HOST_DEVICE float ft_score_scale(float query_scale, float key_scale, float softmax_scale)
{
    return query_scale * key_scale * softmax_scale;
}

/*
 * The decrement of u per unit of a score; score_scale is positive or 0.  It is rounded so that
 * 1 + 2^24 * step is exact in float: sums on GPUs start at 2^24, and this offset then cancels
 * exactly in u.
 */
FT_HOST_DEVICE float ft_softmax_step(float score_scale)
{
    float end = fmaf(score_scale * FT_SOFTMAX_SLOPE, 0x1p24f, 1.0f);
    end = end < 0x1.fffffep23f ? end : 0x1.fffffep23f; /* distinct scores differ by at least 1 */
    return (end - 1.0f) * 0x1p-24f;
}

/* The quantized probability, an integer, of a score that is `below` less than the maximum; `step`
 * is ft_softmax_step(). */
FT_HOST_DEVICE float ft_softmax_code(float below, float step)
{
    const float c[] = FT_SOFTMAX_CHAIN;
    float q = fmaf(-below, step, 1.0f);
    q = q > 0.0f ? q : 0.0f;
    for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++)
        q = fmaf(q, q, c[i]);
    return 4.0f * (fmaf(q, q, FT_SOFTMAX_ROUND) - FT_SOFTMAX_ROUND);
}

/* The factor of sums of p_j * v_j; `total` is P. */
FT_HOST_DEVICE float ft_softmax_factor(float value_scale, float total)
{
    return value_scale / total;
}

#endif
