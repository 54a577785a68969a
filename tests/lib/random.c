/*
 * random.c - SplitMix64: small, fast, and good enough for tests.
 *
 * Source of the mixing constants: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/random.h"

uint64_t rng_bits(rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    uint64_t z = r->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t rng_below(rng *r, uint32_t n)
{
    return (uint32_t) ((rng_bits(r) >> 32) * n >> 32);
}

double rng_uniform(rng *r, double low, double high)
{
    return low + (high - low) * (double) (rng_bits(r) >> 11) * 0x1p-53;
}

/* The sum of twelve uniform numbers has variance 1. */
double rng_normal(rng *r)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += rng_uniform(r, 0.0, 1.0);
    return sum;
}

void rng_floats(rng *r, float *out, size_t n, double sigma)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float) (sigma * rng_normal(r));
}

void rng_int8(rng *r, int8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (int8_t) ((int) rng_below(r, 255) - 127);
}
