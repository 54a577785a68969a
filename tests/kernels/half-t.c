/*
 * half-t.c - conversions of f16 and bf16 on every instruction set are exact in both directions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/rows.h"
#include "kernels/half.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_to_floats(const ft_row_kernels *rows, const char *name)
{
    uint16_t *bits = must_have(0x10000, sizeof *bits);
    float *found = must_have(0x10000, sizeof *found);
    int wrong[2] = { 0, 0 };
    for (size_t i = 0; i < 0x10000; i++)
        bits[i] = (uint16_t) i;
    for (int brain = 0; brain < 2; brain++) {
        rows->to_float(found, bits, brain ? FT_BF16 : FT_F16, 0x10000);
        for (size_t i = 0; i < 0x10000; i++) {
            double expected = brain ? oracle_bf16(bits[i]) : oracle_f16(bits[i]);
            bool same = (double) found[i] == expected && !signbit(found[i]) == !signbit(expected);
            wrong[brain] += !same && !(isnan(expected) && isnan(found[i]));
        }
    }
    is_int(wrong[0], 0, "%s: all 65536 patterns of f16 are converted exactly", name);
    is_int(wrong[1], 0, "%s: all 65536 patterns of bf16 are converted exactly", name);
    free(bits);
    free(found);
}

/*
 * The expected f16 of a number: the nearest one, where infinity counts as 65536; ties go to the
 * even one.  The bits of f16 ascend with their magnitudes.
 */
static uint16_t nearest_half(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint32_t low = 0, high = 0x7c00; /* magnitudes; the last is infinity */
    x = fabs(x);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        *(x < oracle_f16((uint16_t) middle) ? &high : &low) = middle;
    }
    double above = high == 0x7c00 ? 65536.0 : oracle_f16((uint16_t) high);
    double distance = (above - x) - (x - oracle_f16((uint16_t) low));
    bool up = distance < 0.0 || (distance == 0.0 && low % 2 == 1);
    return (uint16_t) (sign | (up ? high : low));
}

/* The floats at and next to each f16 and each midpoint between two; then random bits. */
static void test_to_f16(const ft_row_kernels *rows, const char *name)
{
    enum { AROUND = 6 * 0x7c00, RANDOM = 1 << 16 };
    size_t n = 2 * AROUND + RANDOM;
    float *x = must_have(n, sizeof *x), *at = x;
    uint16_t *found = must_have(n, sizeof *found);
    rng r = { 9 };
    for (uint32_t i = 0; i < 0x7c00; i++) {
        double here = oracle_f16((uint16_t) i);
        double next = i == 0x7bff ? 65536.0 : oracle_f16((uint16_t) (i + 1));
        float centers[2] = { (float) here, (float) ((here + next) / 2) };
        for (int c = 0; c < 2; c++)
            for (int side = -1; side <= 1; side++) {
                float value = side == 0 ? centers[c] : nextafterf(centers[c], (float) side * 1e6f);
                *at++ = value;
                *at++ = -value;
            }
    }
    for (size_t i = 0; i < RANDOM; i++)
        *at++ = ft_float_from_bits((uint32_t) rng_bits(&r));
    rows->from_float(found, x, FT_F16, n);
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += isnan(x[i]) ? (found[i] & 0x7fff) <= 0x7c00
                             : found[i] != nearest_half(isinf(x[i]) ? copysign(1e9, (double) x[i])
                                                                    : (double) x[i]);
    is_int(wrong, 0, "%s: floats are rounded to the nearest f16, ties to even", name);
    free(x);
    free(found);
}

/* All bits, including NaNs, which test_to_halves() hardly covers: the result is that of plain C. */
static void test_bits_of_f16(const ft_row_kernels *rows, const char *name)
{
    enum { ALL = 0x10000 };
    const ft_row_kernels *plain = ft_row_kernels_for(FT_ISA_GENERIC);
    uint16_t *half = must_have(ALL, sizeof *half), *back = must_have(ALL, sizeof *back);
    float *x = must_have(ALL, sizeof *x), *y = must_have(ALL, sizeof *y);
    rng r = { 10 };
    for (size_t i = 0; i < ALL; i++)
        half[i] = (uint16_t) i;
    rows->to_float(x, half, FT_F16, ALL);
    plain->to_float(y, half, FT_F16, ALL);
    bool same = memcmp(x, y, ALL * sizeof *x) == 0;
    for (size_t i = 0; i < ALL; i++)
        x[i] = ft_float_from_bits((uint32_t) rng_bits(&r) | (i % 2 ? 0x7f800000 : 0));
    rows->from_float(half, x, FT_F16, ALL);
    plain->from_float(back, x, FT_F16, ALL);
    ok(same && memcmp(half, back, ALL * sizeof *half) == 0,
       "%s: conversions have the bits of plain C, for NaNs too", name);
    free(half);
    free(back);
    free(x);
    free(y);
}

int main(void)
{
    for (int isa = FT_ISA_GENERIC; isa < FT_ISA_COUNT; isa++) {
        const char *name = ft_isa_name((ft_isa) isa);
        if (!ft_isa_supported((ft_isa) isa)) {
            skip(4, "this machine has no %s", name);
            continue;
        }
        const ft_row_kernels *rows = ft_row_kernels_for((ft_isa) isa);
        test_to_floats(rows, name);
        test_to_f16(rows, name);
        test_bits_of_f16(rows, name);
    }
    return done_testing();
}
