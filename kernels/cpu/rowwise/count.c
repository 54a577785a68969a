/*
 * count.c - adds an array of floats to calibration counters, on the CPU.
 *
 * Soon after the start hardly any value is large enough for the tail. So the keys of a block are
 * first computed without branches, and only a block that contains a tail value is processed value
 * by value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/rowwise/count.h"

#include "kernels/half.h"

enum { BLOCK = 32 };

static uint32_t magnitude_of(float value)
{
    return ft_bits_from_float(value) & ~FT_COUNT_SIGN;
}

/* The keys of a block; returns the largest magnitude. */
static uint32_t block_keys(uint32_t key[BLOCK], uint32_t *zeros, const float *values)
{
    uint32_t largest = 0, n_zeros = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t magnitude = magnitude_of(values[i]);
        largest = magnitude > largest ? magnitude : largest;
        n_zeros += magnitude == 0;
        key[i] = ft_count_key(magnitude);
    }
    *zeros = n_zeros;
    return largest;
}

static void count_block(ft_counts *counts, const uint32_t key[BLOCK], uint32_t zeros)
{
    for (size_t i = 0; i < BLOCK; i++)
        counts->key[key[i]]++;
    counts->zeros += zeros;
}

static void count_scalar(ft_counts *counts, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = magnitude_of(values[i]);
        if (magnitude <= counts->threshold) {
            counts->key[ft_count_key(magnitude)]++;
            counts->zeros += magnitude == 0;
        } else if (magnitude < FT_COUNT_INFINITY && counts->tail_used < FT_COUNT_TAIL_CAPACITY)
            counts->tail[counts->tail_used++] = magnitude;
        else
            ft_counts_add_value(counts, magnitude, 1);
    }
}

void ft_cpu_counts_add(ft_counts *counts, const float *values, size_t n)
{
    for (; n >= BLOCK; values += BLOCK, n -= BLOCK) {
        uint32_t key[BLOCK], zeros;
        if (block_keys(key, &zeros, values) <= counts->threshold)
            count_block(counts, key, zeros);
        else
            count_scalar(counts, values, BLOCK);
    }
    count_scalar(counts, values, n);
}
