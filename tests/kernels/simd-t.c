/*
 * simd-t.c - checks the fused multiply-add that plain C emulates against fmaf().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#define FT_SIMD_SCALAR
#include "kernels/cpu/base/simd.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

enum { ROUNDS = 2000000 };

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

/* Arguments of one kind; `shift` bits of the mantissas are zero, which makes ties likely. */
typedef struct kind {
    const char *name;
    uint32_t exponent, exponents; /* the range of the biased exponents of a and b ... */
    uint32_t c_exponent, c_exponents;
    unsigned zero_bits;
} kind;

static const kind kinds[] = {
    { "any numbers", 0, 256, 0, 256, 0 },
    { "numbers near 1", 120, 16, 120, 16, 0 },
    { "short numbers with ties", 120, 16, 96, 64, 11 },
    { "products near the addend's last bit", 127, 1, 148, 6, 10 },
    { "subnormal results", 40, 48, 0, 4, 4 },
    { "results near overflow", 185, 10, 250, 5, 8 },
};

static float draw(rng *r, uint32_t exponent, uint32_t exponents, unsigned zero_bits)
{
    uint32_t bits = (uint32_t) rng_bits(r);
    uint32_t e = exponent + (uint32_t) (rng_bits(r) % exponents);
    return from_bits((bits & 0x80000000) | e << 23 | (bits & 0x7fffff) >> zero_bits << zero_bits);
}

/*
 * Sums that double precision rounds to the midpoint of two floats: a * b = 2^e * (1 - j^2 * 2^-46),
 * half a unit in the last place of c, but for the second term.
 */
static long long wrong_midpoints(void)
{
    rng r = { 99 };
    long long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float tiny = ldexpf((float) rng_below(&r, 64), -23);
        int exponent = (int) rng_below(&r, 200) - 100;
        float a = ldexpf(1.0f + tiny, exponent), b = rng_below(&r, 2) ? 1.0f - tiny : tiny - 1.0f;
        float c = draw(&r, (uint32_t) (127 + 24 + exponent), 1, 0);
        wrong += !same(vf_fma(a, b, c), fmaf(a, b, c));
    }
    return wrong;
}

int main(void)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        rng r = { i };
        long long wrong = 0;
        for (int round = 0; round < ROUNDS; round++) {
            float a = draw(&r, k->exponent, k->exponents, k->zero_bits),
                  b = draw(&r, k->exponent, k->exponents, k->zero_bits),
                  c = draw(&r, k->c_exponent, k->c_exponents, k->zero_bits);
            wrong += !same(vf_fma(a, b, c), fmaf(a, b, c));
        }
        is_int(wrong, 0, "the multiply-add of plain C has the bits of fmaf() for %s", k->name);
    }
    is_int(wrong_midpoints(), 0,
           "the multiply-add of plain C has the bits of fmaf() near the midpoint of two floats");
    ok(same(vf_fma(0.0f, -1.0f, 0.0f), 0.0f) && same(vf_fma(0.0f, -1.0f, -0.0f), -0.0f),
       "the multiply-add of plain C keeps the sign of zero");
    return done_testing();
}
