/*
 * elementary-t.c - elementary functions: their errors against long double, exact results, special
 * values, and the same bits as on other machines.
 *
 * Long double has at least 64 significant bits on the machines that we support, 11 more than
 * double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/math/elementary.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ARGUMENTS = 100000 };

/* A function with its arguments, the error that elementary.h promises, and the hash of its bits. */
typedef struct function {
    const char *name;
    double (*ours)(double);
    long double (*exact)(long double);
    double low, high, max_error;
    uint64_t hash;
} function;

static const function functions[] = {
    { "exp", ft_math_exp, expl, -20.0, 0.0, 1.0, 0x408b13e31f39cc70 },
    { "exp", ft_math_exp, expl, -700.0, 700.0, 1.0, 0xc7161d3ce814ad0d },
    { "log", ft_math_log, logl, 0.5, 1.5, 1.0, 0x9b783201329e6199 },
    { "log", ft_math_log, logl, 0.0, 1e9, 1.0, 0xdbc5c5441e180332 },
    { "log1p", ft_math_log1p, log1pl, -0.5, 1.0, 3.0, 0x98437e5662de2cf4 },
    { "log1p", ft_math_log1p, log1pl, 0.0, 1e-7, 3.0, 0xd487f1d2a22f280e },
    { "log10", ft_math_log10, log10l, 0.0, 1e6, 2.0, 0xc0c3f04b94427334 },
    { "sin", ft_math_sin, sinl, -1.0, 1.0, 1.0, 0xf225a5389514d89c },
    { "sin", ft_math_sin, sinl, -8388608.0, 8388608.0, 1.0, 0x6286ba373f77a713 },
    { "cos", ft_math_cos, cosl, -1.0, 1.0, 1.0, 0x6ebf05c169553eab },
    { "cos", ft_math_cos, cosl, -8388608.0, 8388608.0, 1.0, 0xac541423955ee204 },
};

/* |found - exact| in units in the last place of a double. */
static double error_of(double found, long double exact)
{
    int exponent;
    (void) frexpl(exact, &exponent);
    return (double) ldexpl(fabsl((long double) found - exact), DBL_MANT_DIG - exponent);
}

/* FNV-1a over the bytes of a result, the lowest one first. */
static void add_to_hash(uint64_t *hash, double result)
{
    uint64_t bits;
    memcpy(&bits, &result, sizeof bits);
    for (int i = 0; i < 64; i += 8)
        *hash = (*hash ^ (bits >> i & 0xff)) * 0x100000001b3;
}

static void test_function(const function *f)
{
    rng r = { 17 };
    uint64_t hash = 0xcbf29ce484222325;
    double max_error = 0.0;
    for (int i = 0; i < ARGUMENTS; i++) {
        double x = rng_uniform(&r, f->low, f->high), found = f->ours(x);
        max_error = fmax(max_error, error_of(found, f->exact((long double) x)));
        add_to_hash(&hash, found);
    }
    ok(max_error < f->max_error, "the error of %s() between %g and %g is below %g units (%.3f)",
       f->name, f->low, f->high, f->max_error, max_error);
    if (!is_int((long long) hash, (long long) f->hash,
                "%s() between %g and %g has the bits of other machines", f->name, f->low, f->high))
        diag("%#llx", (unsigned long long) hash);
}

/* ---- Power -------------------------------------------------------------------------------- */

/* Errors of 2^-11 units in long double allow for no bound closer to one half. */
static void test_pow(double max_log_x, double max_y, uint64_t expected)
{
    rng r = { 18 };
    uint64_t hash = 0xcbf29ce484222325;
    double max_error = 0.0;
    for (int i = 0; i < ARGUMENTS; i++) {
        double x = ft_math_exp(rng_uniform(&r, -max_log_x, max_log_x));
        double y = rng_uniform(&r, -max_y, max_y), found = ft_math_pow(x, y);
        max_error = fmax(max_error, error_of(found, powl((long double) x, (long double) y)));
        add_to_hash(&hash, found);
    }
    ok(max_error < 0.52, "the error of pow() up to e^%g is below 0.52 units (%.4f)",
       max_log_x * max_y, max_error);
    if (!is_int((long long) hash, (long long) expected,
                "pow() up to e^%g has the bits of other machines", max_log_x * max_y))
        diag("%#llx", (unsigned long long) hash);
}

static void test_exact_powers(void)
{
    double ten = 1.0;
    int wrong = 0;
    for (int i = 0; i <= 22; i++, ten *= 10.0)
        wrong += ft_math_pow(10.0, i) != ten;
    is_int(wrong, 0, "the powers of ten that are doubles are exact");
    for (int i = -1074; i < 1024; i++)
        wrong += ft_math_pow(2.0, i) != ldexp(1.0, i);
    is_int(wrong, 0, "all powers of two are exact");
    for (int i = 1; i < 1000; i++)
        wrong += ft_math_pow(i, 3.0) != (double) (i * i * i) || ft_math_pow(i * i, 0.5) != i;
    is_int(wrong, 0, "cubes of integers and roots of squares are exact");
}

/* ---- Special values ----------------------------------------------------------------------- */

/* The same number, or both NaN; zeros have their signs. */
static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void test_special_values(void)
{
    static const double x[] = { 0.0, -0.0, 1.0, -1.0, -2.0, (double) NAN, HUGE_VAL, -HUGE_VAL };
    int wrong[6] = { 0 }, wrong_pow = 0;
    for (size_t i = 0; i < FT_COUNT(x); i++) {
        double v = x[i];
        wrong[0] += (isinf(v) || isnan(v) || v == 0.0) && !same(ft_math_exp(v), exp(v));
        wrong[1] += !same(ft_math_log(v), log(v));
        wrong[2] += (v != 1.0 && !same(ft_math_log1p(v), log1p(v)));
        wrong[3] += !same(ft_math_log10(v), log10(v));
        wrong[4] += (!isfinite(v) || v == 0.0) && !same(ft_math_sin(v), sin(v));
        wrong[5] += (!isfinite(v) || v == 0.0) && !same(ft_math_cos(v), cos(v));
        for (size_t k = 0; k < FT_COUNT(x); k++)
            wrong_pow += !same(ft_math_pow(v, x[k]), pow(v, x[k]));
    }
    for (size_t i = 0; i < 6; i++)
        is_int(wrong[i], 0, "%s() of zeros, infinities and NaN is that of <math.h>",
               (const char *[]){ "exp", "log", "log1p", "log10", "sin", "cos" }[i]);
    is_int(wrong_pow, 0,
           "pow() of zeros, infinities, NaN and negative numbers is that of <math.h>");
}

static void test_ends_of_range(void)
{
    ok(ft_math_exp(709.7) < HUGE_VAL && ft_math_exp(709.8) == HUGE_VAL,
       "exp() overflows where doubles end");
    ok(ft_math_exp(-745.1) == 0x1p-1074 && ft_math_exp(-745.2) == 0.0,
       "exp() underflows where subnormal doubles end");
    ok(ft_math_pow(10.0, 400.0) == HUGE_VAL && ft_math_pow(10.0, -400.0) == 0.0 &&
           ft_math_pow(-10.0, 401.0) == -HUGE_VAL,
       "pow() overflows and underflows");
    near(ft_math_log(0x1p-1074), -1074.0 * 0.69314718055994531, 2e-13,
         "log() of the smallest subnormal double is right");
    near(ft_math_sin(1e22), -0.8522008497671888, 1e22 * 0x1p-100,
         "sin() of 10^22 has the promised absolute error");
    ok(fabs(ft_math_cos(DBL_MAX)) <= 1.0, "cos() of the largest double is a cosine");
}

int main(void)
{
    for (size_t i = 0; i < FT_COUNT(functions); i++)
        test_function(&functions[i]);
    test_pow(5.0, 3.0, 0x54dac6dc58ef960d);
    test_pow(100.0, 6.9, 0xf24c40f897068d41);
    test_exact_powers();
    test_special_values();
    test_ends_of_range();
    return done_testing();
}
