/*
 * norm.h - the arithmetic of layer norm and RMS norm, for all backends.
 *
 * Sums over a row have a fixed order, so that all machines return the same bits.  There are 256
 * partial sums; partial sum i starts at 0 and adds elements i, i + 256, ... in order.  Each 8
 * consecutive partial sums are reduced as a tree with strides 4, 2, 1, and the 32 results with
 * strides 16, 8, 4, 2, 1.  A warp of a GPU reads 256 columns at once, 8 per lane, and needs no
 * shuffle before each lane has a single number.  CPU vectors hold consecutive partial sums.
 *
 *     mean = sum of x / n
 *     variance = sum of (x - mean)^2 / n, each square added by fmaf
 *     factor = 1 / sqrt(variance + eps)
 *     y = fmaf((x - mean) * factor, weight, bias)
 *
 * RMS norm has neither mean nor bias:
 *
 *     square = sum of x^2 / n, each square added by fmaf in the same order
 *     factor = 1 / sqrt(square + eps)
 *     y = (x * factor) * weight
 *
 * Each operation rounds as written; sum / n is ft_norm_mean(), 1 / sqrt is ft_norm_factor().
 *
 * The residual r is float, x + r, or quantized, fmaf(r, scale, x).  If the sum is also a result, it
 * is rounded to its dtype first, and the stored sum is normalized: a separate norm that reads the
 * stored sum returns the same bits.
 *
 * With row scales (dynamic quantization), the scale is ft_scale_from_amax() of the largest
 * magnitude of the row, after rounding to the dtype of the float result if there is one.  The
 * quantized values are ft_quantize(y, ft_inverse_scale(scale)), kernels/quant.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_NORM_H
#define FT_KERNELS_NORM_H

#include "kernels/layout.h"

#include <math.h>

enum { FT_NORM_PARTIALS = 256 };

/*
 * sum / n with inverse = 1 / n: the correctly rounded quotient, by Markstein's correction, unless
 * the numbers are so small that the remainder is not exact.  It takes three operations and has no
 * branch, unlike the division of GPUs.
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
