/*
 * exact_sums-t.c - sums over samples: equal bits in any order and any split, values, and limits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/exact_sums.h"
#include "runtime/mem.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 12, COLS = 201, MAX_ROWS = 9 };

static ft_error err;

/* A sample of MAX_ROWS or fewer rows. */
typedef struct sample {
    size_t rows;
    float x[MAX_ROWS * COLS];
} sample;

static sample samples[SAMPLES];

/* Columns of magnitudes from 2^-9 to 2^10, with single values in the thousands. */
static void make_samples(void)
{
    rng r = { 5 };
    for (int s = 0; s < SAMPLES; s++) {
        samples[s].rows = 1 + rng_below(&r, MAX_ROWS);
        for (size_t i = 0; i < samples[s].rows * COLS; i++) {
            double outlier = rng_below(&r, 900) == 0 ? 5000.0 : 1.0;
            samples[s].x[i] = (float) (rng_normal(&r) * outlier * ldexp(1.0, (int) (i % 20) - 9));
        }
    }
}

static ft_exact_sums begin(void)
{
    ft_exact_sums sums;
    if (ft_exact_sums_init(&sums, COLS, true, &err) != FT_OK)
        bail_out("%s", err.text);
    if (ft_exact_sums_init_cross(&sums, &err) != FT_OK)
        bail_out("%s", err.text);
    sums.unit = ft_exact_sums_unit(samples[0].x, samples[0].rows, COLS);
    return sums;
}

static ft_status add(ft_exact_sums *sums, const float *x, size_t rows)
{
    ft_linalg linalg;
    double *scratch = ft_calloc(ft_exact_sums_scratch(sums->cols), sizeof *scratch);
    if (ft_linalg_init(&linalg, 1, &err) != FT_OK || scratch == NULL)
        bail_out("no linear algebra");
    ft_status status = ft_exact_sums_add(sums, &linalg, x, rows, scratch, "x", &err);
    if (status == FT_OK && sums->cross != NULL) /* d: x, shifted by half a row */
        status =
            ft_exact_sums_add_cross(sums, &linalg, x + COLS / 2, x, rows - 1, scratch, "x", &err);
    free(scratch);
    return status;
}

static void add_sample(ft_exact_sums *sums, int index)
{
    if (add(sums, samples[index].x, samples[index].rows) != FT_OK)
        bail_out("%s", err.text);
}

static bool is_same(const ft_exact_sums *a, const ft_exact_sums *b)
{
    return a->rows == b->rows &&
           memcmp(a->magnitude, b->magnitude, COLS * sizeof(ft_int128)) == 0 &&
           memcmp(a->square, b->square, COLS * sizeof(ft_int128)) == 0 &&
           memcmp(a->difference, b->difference, COLS * sizeof(ft_int128)) == 0 &&
           memcmp(a->cross, b->cross, COLS * COLS * sizeof(int64_t)) == 0 &&
           memcmp(a->moments, b->moments, COLS * COLS * sizeof(int64_t)) == 0;
}

static void shuffle(int *order, rng *r)
{
    for (int i = 0; i < SAMPLES; i++)
        order[i] = i;
    for (int i = SAMPLES - 1; i > 0; i--) {
        int k = (int) rng_below(r, (uint32_t) i + 1), swapped = order[i];
        order[i] = order[k];
        order[k] = swapped;
    }
}

static void test_order(const ft_exact_sums *whole)
{
    rng r = { 17 };
    int wrong = 0, order[SAMPLES];
    for (int trial = 0; trial < 20; trial++) {
        ft_exact_sums sums = begin();
        shuffle(order, &r);
        for (int i = 0; i < SAMPLES; i++)
            add_sample(&sums, order[i]);
        wrong += !is_same(&sums, whole);
        ft_exact_sums_fini(&sums);
    }
    is_int(wrong, 0, "samples in any order have sums of the same bits");
}

static void test_split(const ft_exact_sums *whole)
{
    enum { PARTS = 3 };
    rng r = { 23 };
    int wrong = 0, order[SAMPLES];
    for (int trial = 0; trial < 20; trial++) {
        ft_exact_sums part[PARTS] = { begin(), begin(), begin() };
        shuffle(order, &r);
        for (int i = 0; i < SAMPLES; i++)
            add_sample(&part[rng_below(&r, PARTS)], order[i]);
        for (int i = 1; i < PARTS; i++)
            if (ft_exact_sums_merge(&part[0], &part[i], "x", &err) != FT_OK)
                bail_out("%s", err.text);
        wrong += !is_same(&part[0], whole);
        for (int i = 0; i < PARTS; i++)
            ft_exact_sums_fini(&part[i]);
    }
    is_int(wrong, 0, "any split of the samples merges to sums of the same bits");
}

/* Each of the 12 samples rounds by at most half a unit. */
static void test_values(ft_exact_sums *whole)
{
    double unit = whole->unit, worst = 0.0, column = 0.0;
    double magnitude[COLS], square[COLS];
    ft_exact_sums_columns(whole, magnitude, square);
    double *moments = ft_exact_sums_take_moments(whole);
    for (size_t i = 0; i < COLS; i++)
        for (size_t k = 0; k < COLS; k++) {
            double expected = 0.0, size = 0.0;
            for (int s = 0; s < SAMPLES; s++)
                for (size_t row = 0; row < samples[s].rows; row++) {
                    double a = (double) samples[s].x[row * COLS + i];
                    expected += a * (double) samples[s].x[row * COLS + k];
                    size += fabs(a);
                }
            worst = fmax(worst, fabs(moments[i * COLS + k] - expected));
            if (i == k)
                column = fmax(column, fmax(fabs(square[i] / expected - 1.0),
                                           fabs(magnitude[i] / size - 1.0)));
        }
    ok(worst <= 0.5 * SAMPLES * unit + 1e-6,
       "second moments differ from direct sums by at most half a unit for each sample");
    ok(column < 1e-12, "sums of columns equal direct sums to twelve digits");
    free(moments);
}

static void test_limits(void)
{
    float x[2] = { 1.0f, -2.0f }, nan[2] = { 1.0f, NAN }, large[2] = { 1.0f, 1e15f };
    ft_exact_sums sums;
    if (ft_exact_sums_init(&sums, 2, true, &err) != FT_OK)
        bail_out("%s", err.text);
    sums.unit = ft_exact_sums_unit(x, 1, 2);
    ok(fabs(sums.unit - ldexp(1.0, -18)) < 1e-12,
       "the unit of inputs with a mean square of 2.5 is 2^-18");
    is_int(add(&sums, nan, 1), FT_EFORMAT, "a sample with a NaN is refused");
    is_str(err.text, "x: column 1 is not finite on the sample data",
           "the error names the column that is not finite");
    is_int(add(&sums, large, 1), FT_EFORMAT, "a sample that no exact sum can hold is refused");
    ft_exact_sums_fini(&sums);
    float zero[2] = { 0.0f, 0.0f };
    ok(ft_exact_sums_unit(zero, 1, 2) > 0.0 && isfinite(ft_exact_sums_unit(nan, 1, 2)),
       "the unit is positive for inputs that are 0 and finite for inputs that are not");
}

int main(void)
{
    make_samples();
    ft_exact_sums whole = begin();
    for (int i = 0; i < SAMPLES; i++)
        add_sample(&whole, i);
    test_order(&whole);
    test_split(&whole);
    test_values(&whole);
    ft_exact_sums_fini(&whole);
    test_limits();
    return done_testing();
}
