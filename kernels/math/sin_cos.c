/*
 * sin_cos.c - sine and cosine.
 *
 * x = n pi/2 + r with |r| <= pi/4 up to rounding; then a Taylor polynomial of r.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/math/double_double.h"
#include "kernels/math/elementary.h"

#include <math.h>

/* pi/2 as three doubles. The first two have 30 bits: their products with 23 bits are exact. */
#define HALF_PI_HIGH 0x1.921fb54p+0
#define HALF_PI_MIDDLE 0x1.10b46118p-30
#define HALF_PI_LOW 0x1.313198a2e037p-61

static const double inverse_half_pi = 0x1.45f306dc9c883p-1, reducible = 0x1p23, max_x = 0x1p100;

static double_double subtract_multiple(double_double x, double n)
{
    double_double a = two_sum(x.high, -n * HALF_PI_HIGH), b = two_sum(a.high, -n * HALF_PI_MIDDLE);
    double low = (a.low + b.low) + (x.low - n * HALF_PI_LOW);
    return two_sum(b.high, low);
}

/* r, and n modulo 4. Large numbers lose about 22 bits at a time; beyond max_x, no bit of r counts.
 */
static double_double reduce(double x, int *quadrant)
{
    double_double r = { fmod(x, max_x), 0.0 };
    double turns = 0.0;
    for (;;) {
        double n = r.high * inverse_half_pi;
        int exponent = fabs(n) < reducible ? 0 : ilogb(n) - 22;
        n = ldexp(rint(ldexp(n, -exponent)), exponent);
        r = subtract_multiple(r, n);
        turns += fmod(n, 4.0);
        if (exponent == 0)
            break;
    }
    *quadrant = (int) fmod(turns, 4.0) & 3;
    return r;
}

/* sin(r.high + r.low) */
static double sin_of_part(double_double r)
{
    static const double c[] = {
        1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
        1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6
    };
    double square = r.high * r.high;
    double cubic = square * r.high * horner(c, sizeof c / sizeof c[0], square);
    return r.high + (cubic + r.low * (1.0 - 0.5 * square));
}

/* cos(r.high + r.low) */
static double cos_of_part(double_double r)
{
    static const double c[] = {
        -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
        -1.0 / 3628800,          1.0 / 40320,          -1.0 / 720,         1.0 / 24
    };
    double square = r.high * r.high;
    double_double sum = fast_two_sum(1.0, -0.5 * square);
    double quartic = square * square * horner(c, sizeof c / sizeof c[0], square);
    return sum.high + (sum.low + (quartic - r.high * r.low));
}

/* sin(x + shift pi/2) */
static double sin_at(double x, int shift)
{
    int quadrant;
    if (!isfinite(x))
        return x - x;
    double_double r = reduce(x, &quadrant);
    quadrant = (quadrant + shift) & 3;
    double value = quadrant & 1 ? cos_of_part(r) : sin_of_part(r);
    return quadrant & 2 ? -value : value;
}

double ft_math_sin(double x)
{
    return x == 0.0 ? x : sin_at(x, 0);
}

double ft_math_cos(double x)
{
    return sin_at(x, 1);
}
