/*
 * count-t.c - counters: keys, the tail, independence of order and of shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/rowwise/count.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_counts fresh(void)
{
    ft_counts counts;
    if (!ft_counts_init(&counts))
        bail_out("out of memory: counters");
    return counts;
}

static bool same(const ft_counts *a, const ft_counts *b)
{
    return a->tail_used == b->tail_used && a->zeros == b->zeros && a->nans == b->nans &&
           a->infinities == b->infinities &&
           memcmp(a->tail, b->tail, a->tail_used * sizeof *a->tail) == 0 &&
           memcmp(a->key, b->key, FT_COUNT_KEYS * sizeof *a->key) == 0;
}

/* Values of all magnitudes and both signs: random bits, with exponents from 2^-48 to 2^27. */
static float *random_values(size_t n)
{
    float *values = malloc(n * sizeof *values);
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t bits = (uint32_t) (state >> 32);
        uint32_t exponent = 127 - 48 + (uint32_t) (state >> 20 & 0xfff) % 76;
        values[i] = ft_float_from_bits((bits & 0x807fffff) | exponent << 23);
        if (i % 50 == 0)
            values[i] = i % 100 == 0 ? 0.0f : -0.0f;
    }
    return values;
}

static void test_keys(void)
{
    int wrong = 0, inexact = 0;
    for (uint32_t key = 0; key < FT_COUNT_KEYS; key++) {
        uint32_t lowest = ft_count_magnitude(key), highest = ft_count_magnitude(key + 1) - 1;
        wrong += ft_count_key(lowest) != key || ft_count_key(highest) != key;
    }
    is_int(wrong, 0, "a counter key covers the magnitudes from its own up to the next key's");
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        uint32_t magnitude = ft_bits_from_float(ft_float_from_f16((uint16_t) bits));
        inexact += ft_count_magnitude(ft_count_key(magnitude)) != magnitude;
    }
    is_int(inexact, 0, "every f16 magnitude is the lower bound of its key");
    is_int(ft_count_key(ft_bits_from_float(0x1.ffffp-41f)), 0, "magnitudes below 2^-40 have key 0");
    is_int(ft_count_key(ft_bits_from_float(0x1p-40f)), 1, "the magnitude 2^-40 has key 1");
    is_int(ft_count_key(ft_bits_from_float(3e38f)), FT_COUNT_KEYS - 1,
           "the magnitude 3e38 has the last key");
}

static void test_small(void)
{
    ft_counts c = fresh();
    ft_cpu_counts_add(&c, (float[]){ 1.5f, -0.0f, NAN, -INFINITY, 0.0f, -1.5f, 1e-45f, -NAN, 0.1f },
                      9);
    ft_counts_finalize(&c);
    is_int((long long) c.zeros, 2, "both zeros are counted");
    is_int((long long) c.key[0], 2, "both zeros have key 0");
    is_int((long long) c.nans, 2, "NaNs are counted separately");
    is_int((long long) c.infinities, 1, "infinities are counted separately");
    is_int((long long) ft_counts_total(&c), 6, "the total counts finite values only");
    const float sorted[] = { 1e-45f, 0.1f, 1.5f, 1.5f };
    ok(c.tail_used == 4 && memcmp(c.tail, sorted, sizeof sorted) == 0,
       "a few values are all in the tail, exact and sorted");
    ft_counts_fini(&c);
}

static int descending(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The definition of the tail, by sorting all values. */
static ft_counts by_definition(const float *values, size_t n)
{
    ft_counts c = fresh();
    uint32_t *magnitude = malloc(n * sizeof *magnitude);
    for (size_t i = 0; i < n; i++)
        magnitude[i] = ft_bits_from_float(fabsf(values[i]));
    qsort(magnitude, n, sizeof *magnitude, descending);
    for (size_t i = 0; i < n; i++) {
        c.zeros += magnitude[i] == 0;
        if (i < FT_COUNT_TAIL && magnitude[i] > 0)
            c.tail[FT_COUNT_TAIL - ++c.tail_used] = magnitude[i];
        else
            c.key[ft_count_key(magnitude[i])]++;
    }
    memmove(c.tail, c.tail + FT_COUNT_TAIL - c.tail_used, c.tail_used * sizeof *c.tail);
    free(magnitude);
    return c;
}

static void test_order(const float *values, size_t n)
{
    ft_counts expected = by_definition(values, n), whole = fresh(), reversed = fresh();
    ft_cpu_counts_add(&whole, values, n);
    ft_counts_finalize(&whole);
    ok(same(&whole, &expected),
       "%zu values: the largest are in the tail, the others are counted by key", n);
    is_int((long long) ft_counts_total(&whole), (long long) n, "every value is counted once");
    for (size_t i = n; i-- > 0;)
        ft_cpu_counts_add(&reversed, values + i, 1);
    ft_counts_finalize(&reversed);
    ok(same(&reversed, &expected), "the counters do not depend on the order of the values");

    for (int parts = 2; parts <= 7; parts += 5) {
        ft_counts sum = fresh();
        for (int i = parts - 1; i >= 0; i--) {
            size_t from = n * (size_t) i / (size_t) parts,
                   to = n * (size_t) (i + 1) / (size_t) parts;
            ft_counts part = fresh();
            ft_cpu_counts_add(&part, values + from, to - from);
            ft_counts_finalize(&part);
            ft_counts_merge(&sum, &part);
            ft_counts_fini(&part);
        }
        ft_counts_finalize(&sum);
        ok(same(&sum, &expected),
           "merging the counters of %d shards gives the counters of all values", parts);
        ft_counts_fini(&sum);
    }
    ft_counts_fini(&expected);
    ft_counts_fini(&whole);
    ft_counts_fini(&reversed);
}

static void test_many_equal(void)
{
    ft_counts c = fresh(), one_by_one = fresh();
    const uint32_t magnitude = ft_bits_from_float(0.3f);
    ft_counts_add_value(&c, ft_bits_from_float(0.5f), 3);
    ft_counts_add_value(&c, magnitude, (1 << 24) + 1);
    ft_counts_finalize(&c);
    is_int((long long) ft_counts_total(&c), (1 << 24) + 4, "2^24 + 1 equal values are all counted");
    is_int((long long) c.key[ft_count_key(magnitude)], (1 << 24) + 4 - FT_COUNT_TAIL,
           "equal values beyond the tail's capacity are counted by key");
    ok(c.tail[0] == magnitude && c.tail[FT_COUNT_TAIL - 4] == magnitude &&
           c.tail[FT_COUNT_TAIL - 3] > magnitude,
       "larger values stay in the tail");

    for (int i = 0; i < 300000; i++)
        ft_counts_add_value(&one_by_one, magnitude, 1);
    ft_counts_finalize(&one_by_one);
    ft_counts_fini(&c);
    c = fresh();
    ft_counts_add_value(&c, magnitude, 300000);
    ft_counts_finalize(&c);
    ok(same(&c, &one_by_one), "a value with a multiplicity counts like that many single values");
    ft_counts_fini(&c);
    ft_counts_fini(&one_by_one);
}

int main(void)
{
    test_keys();
    test_small();
    float *values = random_values(400000);
    test_order(values, 400000);
    test_order(values, 65536);
    test_order(values, 1000);
    free(values);
    test_many_equal();
    return done_testing();
}
