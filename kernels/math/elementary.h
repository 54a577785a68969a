/*
 * elementary.h - elementary functions in double precision, with the same bits on every processor.
 *
 * A libm has variants for processors with and without fused multiply-add, whose results differ in
 * the last bit. These functions add and multiply in a fixed order and never fuse. Wherever a result
 * reaches a model output, an artifact or a report, they replace those of <math.h>; functions that
 * IEEE 754 defines to the bit, such as sqrt(), fmod() and rint(), stay.
 *
 * Errors are in units in the last place of a double, and hold where the result is not subnormal.
 * NaN, infinities and signed zeros are treated as in C11 Annex F.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_MATH_ELEMENTARY_H
#define FT_KERNELS_MATH_ELEMENTARY_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

double ft_math_exp(double x);   /* error below 1 */
double ft_math_log(double x);   /* error below 1 */
double ft_math_log1p(double x); /* error below 3 */
double ft_math_log10(double x); /* error below 2 */

/* Error below 0.52, so results that are doubles are exact. */
double ft_math_pow(double x, double y);

/* Error below 1 for |x| < 2^23; absolute error below |x| * 2^-100 + 2^-53 beyond, within -1 .. 1.
 */
double ft_math_sin(double x);
double ft_math_cos(double x);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
