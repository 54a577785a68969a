/*
 * norm.h - the one definition of a layer norm's arithmetic, for every backend.
 *
 * Sums over a row have a fixed order, so that their bits are the same on every machine: 256 parts,
 * of which part i adds elements i, i + 256, ... in order, from 0 on.  Then each eight neighbouring
 * parts are added as a tree, those 4 apart first, then 2, then 1; and so are the 32 sums of eights:
 * 16 apart, 8, 4, 2, 1.  A warp of a GPU reads 256 columns at once, 8 by each lane: no lane asks
 * another one before it has a single number.  A CPU's vectors are parts side by side.
 *
 *     mean = sum of x / n
 *     variance = sum of (x - mean)^2 / n, each square added by fmaf
 *     y = fmaf((x - mean) * factor, weight, bias)
 *
 * What a norm adds to x before is a float, x + r, or codes, fmaf(code, scale, x).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_NORM_H
#define FT_KERNELS_NORM_H

#include "kernels/layout.h"

#include <math.h>

enum { FT_NORM_PARTS = 256 };

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
