/*
 * int8_x_term-t.c - what GPU kernels compute with int8 activations, on the CPU: the quantization of
 * a group, its term, and the exact sum that follows from the products of offset weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/gemm/groupwise/int8_x_term.h"
#include "tests/lib/ops/groupwise.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

enum { GROUPS = 2000, MAX_COLS = 128, PADDED = 160 };

static bool keeps(int32_t sum)
{
    bool same = true;
    for (int32_t zero = -128; zero <= 127; zero++) {
        int32_t term = ft_int8_x_term(sum, zero);
        same = same && ft_int8_x_sum(term) == sum && ft_int8_x_zero(term) == zero;
    }
    return same;
}

static void test_terms(void)
{
    const int32_t most = 255 * FT_GROUPWISE_MAX_INT8_GROUP;
    ok(keeps(0) && keeps(1) && keeps(-1) && keeps(most) && keeps(-most),
       "a term has any zero point and any sum of the largest group");
}

/* A group of some size, sign and magnitude. */
static size_t random_group(rng *r, float *x)
{
    size_t n = 1 + rng_below(r, MAX_COLS);
    float shift = (float) rng_uniform(r, -2.0, 2.0);
    float size = ldexpf(1.0f, (int) rng_below(r, 250) - 140);
    for (size_t i = 0; i < n; i++)
        x[i] = size * (shift + (float) rng_uniform(r, -1.0, 1.0));
    return n;
}

/* As a kernel does: maxima of bits, parameters, values. */
static ft_groupwise_x_params quantize(int32_t *q, const float *x, size_t n)
{
    int32_t high = 0, minus_low = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits = ft_positive_bits(x[i]), minus_bits = ft_positive_bits(-x[i]);
        high = bits > high ? bits : high;
        minus_low = minus_bits > minus_low ? minus_bits : minus_low;
    }
    ft_groupwise_x_params params = ft_groupwise_x_params_of(
        ft_float_from_bits((uint32_t) high), ft_float_from_bits((uint32_t) minus_low));
    for (size_t i = 0; i < n; i++)
        q[i] = (int32_t) ft_groupwise_quantize_to_float(x[i], &params);
    return params;
}

static void test_quantization(void)
{
    rng r = { 1 };
    bool same = true, in_range = true;
    for (size_t i = 0; i < GROUPS; i++) {
        float x[MAX_COLS];
        int32_t found[MAX_COLS], expected[MAX_COLS];
        size_t n = random_group(&r, x);
        ft_groupwise_x_params params = quantize(found, x, n);
        int8_group by = quantize_group(expected, x, n);
        same = same && params.scale == by.scale && params.zero == by.zero &&
               memcmp(found, expected, n * sizeof *found) == 0;
        for (size_t j = 0; j < n; j++)
            in_range = in_range && found[j] >= -128 && found[j] <= 127;
    }
    ok(same, "groups of any size, sign and magnitude are quantized as the definition says");
    ok(in_range, "quantized values are -128..127");
}

static void test_not_finite(void)
{
    static const float values[] = { INFINITY, -INFINITY, NAN, -NAN };
    bool all = true;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        float x[3] = { 1.0f, values[i], -2.0f };
        int32_t q[3];
        ft_groupwise_x_params params = quantize(q, x, 3);
        all = all && isnan(params.scale) && params.inverse == 0.0f && params.zero == 0;
    }
    ok(all, "the scale of a group with an element that is not finite is NaN");
}

/* Weights with an offset of 128 or 0, and arbitrary ones in columns of padding. */
static bool is_exact(rng *r, int32_t offset)
{
    float x[PADDED] = { 0 };
    int32_t q[PADDED], products = 0, sum = 0, weight_sum = 0, expected = 0;
    size_t n = random_group(r, x);
    int32_t zero_w = (int32_t) rng_below(r, 256);
    ft_groupwise_x_params params = quantize(q, x, PADDED);
    for (size_t i = 0; i < PADDED; i++) {
        int32_t w = (int32_t) rng_below(r, 256);
        products += (w - offset) * q[i];
        weight_sum += w - offset;
        sum += q[i] - params.zero;
        if (i < n)
            expected += (w - zero_w) * (q[i] - params.zero);
    }
    return ft_int8_exact_sum(products, ft_int8_x_term(sum, params.zero), zero_w - offset,
                             weight_sum) == expected;
}

static void test_sums(void)
{
    rng r = { 2 };
    bool exact = true;
    for (size_t i = 0; i < GROUPS; i++)
        exact = is_exact(&r, 0) && is_exact(&r, 128) && exact;
    ok(exact, "the sum of a group is exact, whatever the weights of its padding");
}

int main(void)
{
    test_terms();
    test_quantization();
    test_not_finite();
    test_sums();
    return done_testing();
}
