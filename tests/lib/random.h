/*
 * random.h - random numbers for tests: the same ones on every machine and in every run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_RANDOM_H
#define FT_TESTS_LIB_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* A stream of random numbers that depends only on its seed. */
typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_bits(rng *r);

/* An integer from 0 to n - 1; n is at least 1. */
uint32_t rng_below(rng *r, uint32_t n);

/* Uniform between low and high. */
double rng_uniform(rng *r, double low, double high);

/* Approximately normal with mean 0 and variance 1, within +-6. */
double rng_normal(rng *r);

/* Fill an array: normal floats of standard deviation `sigma`, or int8 values -127..127. */
void rng_floats(rng *r, float *out, size_t n, double sigma);
void rng_int8(rng *r, int8_t *out, size_t n);

#endif
