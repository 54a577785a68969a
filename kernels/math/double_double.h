/*
 * double_double.h - numbers as an unevaluated sum of two doubles, with about 100 significant bits.
 *
 * Sources: Dekker 1971, "A floating-point technique for extending the available precision"; Knuth,
 * "The Art of Computer Programming", volume 2, for the sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_MATH_DOUBLE_DOUBLE_H
#define FT_KERNELS_MATH_DOUBLE_DOUBLE_H

/* high + low, where high is the sum rounded to double. */
typedef struct double_double {
    double high, low;
} double_double;

/* a + b, exactly; |a| >= |b| or a = 0. */
static inline double_double fast_two_sum(double a, double b)
{
    double sum = a + b;
    return (double_double){ sum, b - (sum - a) };
}

/* a + b, exactly. */
static inline double_double two_sum(double a, double b)
{
    double sum = a + b, b_part = sum - a;
    return (double_double){ sum, (a - (sum - b_part)) + (b - b_part) };
}

/* The upper 26 bits of a, rounded; |a| < 2^996. */
static inline double upper_half(double a)
{
    double scaled = 0x8000001p0 * a; /* 2^27 + 1 */
    return scaled - (scaled - a);
}

/* a * b, exactly unless parts of it underflow. */
static inline double_double two_product(double a, double b)
{
    double product = a * b, a_high = upper_half(a), b_high = upper_half(b);
    double a_low = a - a_high, b_low = b - b_high;
    double rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return (double_double){ product, rest };
}

static inline double_double dd_add(double_double a, double_double b)
{
    double_double sum = two_sum(a.high, b.high);
    return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

static inline double_double dd_multiply(double_double a, double_double b)
{
    double_double product = two_product(a.high, b.high);
    return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* a / b, where b is exact or has a low part. */
static inline double_double dd_divide(double_double a, double_double b)
{
    double quotient = a.high / b.high;
    double_double product = two_product(quotient, b.high);
    double rest = ((a.high - product.high) - product.low + a.low) - quotient * b.low;
    return fast_two_sum(quotient, rest / b.high);
}

/* A polynomial with coefficients c[0] .. c[n - 1], the highest power first. */
static inline double horner(const double *c, int n, double x)
{
    double sum = c[0];
    for (int i = 1; i < n; i++)
        sum = sum * x + c[i];
    return sum;
}

#endif
