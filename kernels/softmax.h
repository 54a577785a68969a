/*
 * softmax.h - the one definition of a softmax of codes, for every backend: attention's in int8.
 *
 * A row of exact scores s_j, whose largest is M, becomes codes and their sum:
 *
 *     p_j = round(127 * e^((s_j - M) * score_scale))    0 .. 127, and 127 for the largest
 *     P   = sum of p_j
 *     context = (sum of p_j * v_j) * (scale of v / P)
 *
 * So each row has a probability scale of its own, 1 / P.  A scale known before, as calibration
 * could give, would have to serve rows of one large probability and rows of 384 small ones alike,
 * and it needs the sum of the exponentials before the first code: one more sweep over the keys.
 * Here all that is added are integers, so a result does not depend on the order of the keys, and
 * the only thing to know before the first code is M.
 *
 * The exponential only becomes a code, so it is as short as that allows, and has no integer part
 * to split off: with u = 1 - (M - s) * step, held at 0, and step = score_scale * log2(e) / 8,
 *
 *     127 * 2^(8 u - 8) = ((C(u))^2)^2,    C a cubic, highest power first,
 *
 * minimax of the absolute error over 0 <= u <= 1: 0.046 of a code.  C increases, so codes are in
 * the order of their scores.  Where u is held, 127 / 256 becomes 0 as all that lies below does.
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

/*
 * What one unit of a score takes from u; score_scale is positive, or 0.  Rounded so that 1 + 2^24
 * step is a float: a GPU's sums begin at 2^24, and that they do then leaves no trace in u.
 */
FT_HOST_DEVICE float ft_softmax_step(float score_scale)
{
    float end = fmaf(score_scale * (FT_LOG2_E / 8), 0x1p24f, 1.0f);
    end = end < 0x1.fffffep23f ? end : 0x1.fffffep23f; /* two scores are never nearer than 1 */
    return (end - 1.0f) * 0x1p-24f;
}

/* The code, a whole number, of a score that lies `below` the largest; step is of the above. */
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

/* What sums of p_j * v_j are multiplied by; `total` is P. */
FT_HOST_DEVICE float ft_softmax_factor(float value_scale, float total)
{
    return value_scale / total;
}

#endif
