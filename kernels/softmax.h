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
 * off: with u = 1 - (M - s) * step, clamped to at least 0, and step = score_scale * log2(e) / 8,
 *
 *     127 * 2^(8 u - 8) = ((C(u))^2)^2,    C a cubic, highest power first,
 *
 * minimax absolute error 0.046 quantization steps over 0 <= u <= 1.  C is increasing, so that
 * quantized probabilities have the order of their scores.  At u = 0 the result is about 127 / 256,
 * which rounds to 0, as do all smaller values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_SOFTMAX_H
#define FT_KERNELS_SOFTMAX_H

#include "kernels/activation.h"

#define FT_SOFTMAX_POLYNOMIAL                                                                      \
    {                                                                                              \
        0x1.d95b84p-1f, 0x1.f799dap-3f, 0x1.5de4c6p+0f, 0x1.a395f6p-1f                             \
    }

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
    float end = fmaf(score_scale * (FT_LOG2_E / 8), 0x1p24f, 1.0f);
    end = end < 0x1.fffffep23f ? end : 0x1.fffffep23f; /* distinct scores differ by at least 1 */
    return (end - 1.0f) * 0x1p-24f;
}

/* The quantized probability, an integer, of a score that is `below` less than the maximum; `step`
 * is ft_softmax_step(). */
FT_HOST_DEVICE float ft_softmax_code(float below, float step)
{
    const float c[] = FT_SOFTMAX_POLYNOMIAL;
    float u = fmaf(-below, step, 1.0f), q = c[0];
    u = u > 0.0f ? u : 0.0f;
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        q = fmaf(q, u, c[i]);
    q = q * q;
    return rintf(q * q);
}

/* The factor of sums of p_j * v_j; `total` is P. */
FT_HOST_DEVICE float ft_softmax_factor(float value_scale, float total)
{
    return value_scale / total;
}

#endif
