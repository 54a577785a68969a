/*
 * counter_rng.h - counter-based random numbers: a function of key and counter, so the result does
 * not depend on the number of threads.
 *
 * Source of the mixing constants: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_SYNTHETIC_COUNTER_RNG_H
#define FT_RUNTIME_TOOLS_SYNTHETIC_COUNTER_RNG_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ft_counter_rng(uint64_t key, size_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in 0 .. n - 1. */
static inline uint32_t ft_counter_rng_below(uint64_t key, size_t counter, uint32_t n)
{
    return (uint32_t) ((ft_counter_rng(key, counter) >> 32) * n >> 32);
}

/*
 * Approximately normal, mean 0, variance 1, absolute value below 3.5: the sum of four uniform
 * 16-bit numbers, each with variance 2^32 / 12.
 */
static inline float ft_counter_rng_normal(uint64_t key, size_t counter)
{
    uint64_t z = ft_counter_rng(key, counter);
    uint32_t sum = (uint32_t) ((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    return ((float) sum - 131070.0f) * 2.6428998e-5f;
}

#endif
