/*
 * exp_log.c - exponential, logarithm and power.
 *
 * exp(x) = 2^n e^r with |r| <= ln(2) / 2, and e^r by its Taylor polynomial. For the logarithm, x =
 * 2^n m with m between sqrt(1/2) and sqrt(2), and log(m) = 2 artanh(s) with s = (m - 1) / (m + 1),
 * an odd series in s. pow() computes both with their leading terms in two doubles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/math/double_double.h"
#include "kernels/math/elementary.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln(2) as three doubles. The first two end in zeros, so that their products with n are exact. */
#define LN2_HIGH 0x1.62e42fefa38p-1
#define LN2_MIDDLE 0x1.ef35793c76p-45
#define LN2_LOW 0x1.cc01f97b57a08p-87

static const double inverse_ln2 = 0x1.71547652b82fep+0;

/* Exponents beyond which e^x is 0 or infinite; within them, the n of reduce() stays small. */
static const double min_exponent = -746.0, max_exponent = 710.0;

/* ---- Exponential -------------------------------------------------------------------------- */

/* 2^n for a normal result. */
static double power_of_two(int n)
{
    uint64_t bits = (uint64_t) (n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* value * 2^n for |n| < 2000, in two steps that do not overflow or underflow before the result. */
static double scale(double value, int n)
{
    return value * power_of_two(n / 2) * power_of_two(n - n / 2);
}

/* x - n ln(2) for the nearest n, which is less than 2^11; x may have a low part. */
static double_double reduce(double_double x, double *n)
{
    *n = rint(x.high * inverse_ln2);
    double_double r = two_sum(x.high - *n * LN2_HIGH, -*n * LN2_MIDDLE);
    return fast_two_sum(r.high, r.low + (x.low - *n * LN2_LOW));
}

/* (e^r - 1 - r - r^2 / 2) / r^3 */
static double exp_tail(double r)
{
    static const double c[] = {
        1.0 / 1307674368000, 1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
        1.0 / 3628800,       1.0 / 362880,      1.0 / 40320,      1.0 / 5040,      1.0 / 720,
        1.0 / 120,           1.0 / 24,          1.0 / 6
    };
    return horner(c, sizeof c / sizeof c[0], r);
}

double ft_math_exp(double x)
{
    double n;
    if (isnan(x))
        return x;
    if (x > max_exponent || x < min_exponent)
        return x > 0.0 ? HUGE_VAL : 0.0;
    double_double r = reduce((double_double){ x, 0.0 }, &n);
    double square = r.high * r.high;
    return scale(1.0 + (r.high + (r.low + (0.5 * square + square * r.high * exp_tail(r.high)))),
                 (int) n);
}

/* e^x, with the error of the final rounding only. */
static double exp_of_sum(double_double x)
{
    double n;
    if (x.high > max_exponent || x.high < min_exponent)
        return x.high > 0.0 ? HUGE_VAL : 0.0;
    double_double r = reduce(x, &n), square = dd_multiply(r, r);
    double cube = square.high * r.high * exp_tail(r.high);
    double_double sum = dd_add(r, (double_double){ 0.5 * square.high, 0.5 * square.low });
    sum = dd_add(sum, (double_double){ cube, 0.0 });
    sum = dd_add((double_double){ 1.0, 0.0 }, sum);
    return scale(sum.high, (int) n);
}

/* ---- Logarithm ---------------------------------------------------------------------------- */

/* x = 2^n m for a positive, finite x; returns m, between sqrt(1/2) and sqrt(2). */
static double split(double x, double *n)
{
    uint64_t bits;
    int subnormal = x < DBL_MIN ? 54 : 0;
    x = ldexp(x, subnormal);
    memcpy(&bits, &x, sizeof bits);
    uint64_t shifted = bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    *n = (double) ((int) (shifted >> 52) - 1023 - subnormal);
    bits -= (shifted & 0xfff0000000000000) - 0x3ff0000000000000;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* (artanh(s) - s - s^3 / 3) / s^5 from the square of s */
static double artanh_tail(double square)
{
    static const double c[] = { 1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15,
                                1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5 };
    return horner(c, sizeof c / sizeof c[0], square);
}

/* NaN, infinity and zero, of which the logarithm takes the value of <math.h>; and negative numbers.
 */
static int is_special(double x)
{
    return !(x > 0.0) || isinf(x);
}

double ft_math_log(double x)
{
    double n;
    if (is_special(x))
        return log(x);
    double f = split(x, &n) - 1.0, s = f / (2.0 + f), square = s * s, half = 0.5 * f * f;
    double rest = square * (2.0 / 3 + square * (2.0 * artanh_tail(square)));
    /* 2 s = f - s f, and s f = f^2 / 2 - s f^2 / 2: the rounding error of s counts little. */
    return n * LN2_HIGH + (f - (half - (s * (half + rest) + n * LN2_MIDDLE)));
}

/* The logarithm of a positive, finite number in two doubles. */
static double_double log_of(double x)
{
    static const double_double third = { 0x1.5555555555555p-2, 0x1.5555555555555p-56 };
    double n, m = split(x, &n);
    double_double s = dd_divide((double_double){ m - 1.0, 0.0 }, two_sum(m, 1.0));
    double_double square = dd_multiply(s, s), cube = dd_multiply(square, s);
    double_double sum = dd_add(s, dd_multiply(cube, third));
    sum = dd_add(sum, (double_double){ cube.high * square.high * artanh_tail(square.high), 0.0 });
    sum = dd_add((double_double){ 2.0 * sum.high, 2.0 * sum.low },
                 (double_double){ n * LN2_MIDDLE, n * LN2_LOW });
    return dd_add((double_double){ n * LN2_HIGH, 0.0 }, sum);
}

double ft_math_log10(double x)
{
    return is_special(x) ? log10(x) : ft_math_log(x) * 0x1.bcb7b1526e50ep-2;
}

/* With u = 1 + x rounded, log(u) x / (u - 1) cancels the error of u, as log(u) / (u - 1) is smooth.
 */
double ft_math_log1p(double x)
{
    double u = 1.0 + x;
    if (is_special(u))
        return log1p(x);
    return u == 1.0 ? x : ft_math_log(u) * (x / (u - 1.0));
}

/* ---- Power -------------------------------------------------------------------------------- */

static double pow_of_positive(double x, double y)
{
    double_double log_x = log_of(x);
    double rough = y * log_x.high;
    if (!(rough < max_exponent + 1.0 && rough > min_exponent - 1.0))
        return rough > 0.0 ? HUGE_VAL : 0.0;
    return exp_of_sum(dd_multiply(log_x, (double_double){ y, 0.0 }));
}

/* Results of zeros, infinities and NaN have no rounding error. */
double ft_math_pow(double x, double y)
{
    if (x == 0.0 || y == 0.0 || x == 1.0 || !isfinite(x) || !isfinite(y))
        return pow(x, y);
    if (x > 0.0)
        return pow_of_positive(x, y);
    if (y != rint(y))
        return (double) NAN;
    return fmod(y, 2.0) == 0.0 ? pow_of_positive(-x, y) : -pow_of_positive(-x, y);
}
