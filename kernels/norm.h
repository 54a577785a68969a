/*
 * norm.h - the one definition of a norm's arithmetic, for every backend.
 *
 * Sums over a row have a fixed order, so that their bits are the same on every machine: 256 parts,
 * of which part i adds elements i, i + 256, ... in order, from 0 on.  Then each eight neighbouring
 * parts are added as a tree, those 4 apart first, then 2, then 1; and so are the 32 sums of eights:
 * 16 apart, 8, 4, 2, 1.  A warp of a GPU reads 256 columns at once, 8 by each lane: no lane asks
 * another one before it has a single number.  A CPU's vectors are parts side by side.
 *
 *     mean = sum of x / n
 *     variance = sum of (x - mean)^2 / n, each square added by fmaf
 *     factor = 1 / sqrt(variance + eps)
 *     y = fmaf((x - mean) * factor, weight, bias)
 *
 * and of an rms norm, which has neither mean nor bias,
 *
 *     square = sum of x^2 / n, each square added by fmaf in the same order
 *     factor = 1 / sqrt(square + eps)
 *     y = (x * factor) * weight
 *
 * Each line rounds as it is written; sum / n is ft_norm_mean() everywhere, 1 / sqrt
 * ft_norm_factor().
 *
 * What a norm adds to x before is a float, x + r, or codes, fmaf(code, scale, x).  Where that sum
 * is also a result that others read, it is rounded to its dtype first, and what was stored is
 * normalized: an operation of its own that reads the stored sum gives the same bits.
 *
 * Where the result becomes codes whose scale is its row's own, the scale is that of the largest
 * magnitude of the row, after rounding to the dtype of a float result that is written too:
 * ft_scale_from_amax(), and the codes ft_quantize(y, ft_inverse_scale(scale)), kernels/quant.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_NORM_H
#define FT_KERNELS_NORM_H

#include "kernels/layout.h"

#include <math.h>

enum { FT_NORM_PARTIALS = 256 };

/*
 * sum / n where inverse = 1 / n: the quotient rounded once, by Markstein's correction, unless the
 * numbers are so small that the remainder is not exact.  Three operations, and no branch as in a
 * GPU's division.
 */
FT_HOST_DEVICE float ft_norm_mean(float sum, float n, float inverse)
{
    float mean = sum * inverse;
    return fmaf(fmaf(-mean, n, sum), inverse, mean);
}

FT_HOST_DEVICE float ft_norm_factor(float variance, float eps)
{
    return 1.0f / sqrtf(variance + eps);
}

#endif
