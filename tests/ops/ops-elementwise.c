/*
 * ops-elementwise.c - elementwise and row operations: activate, quantize, dequantize,
 * l2_normalize, pool, observe.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "runtime/mem.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = TOKENS * HIDDEN };

/* ---- Maps --------------------------------------------------------------------------------- */

/* Runs the operation `kind` on the rows of x. */
static float *map_floats(bench *on, ft_op_kind kind, ft_activation activation, const float *x,
                         size_t cols)
{
    float *found = must_have(TOKENS * cols, sizeof *found);
    oneop t;
    oneop_begin(&t, on, kind, &mixed_batch);
    t.op.attr.activation = activation;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) cols, FT_F32, 0.0f, x);
    oneop_out(&t, FT_TOKENS, (int32_t) cols);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    return found;
}

void test_activate(bench *on)
{
    /* Error bounds of kernels/activation.h; the relative ones are those of a division and of exp.
     */
    static const struct {
        double relative, absolute;
    } bounds[] = {
        [FT_ACT_NONE] = { 0.0, 0.0 },
        [FT_ACT_GELU] = { ROUNDING, 1.5e-6 },
        [FT_ACT_GELU_APPROX] = { 2e-6, 1.1e-3 },
        [FT_ACT_GELU_TANH] = { 2e-6, 1e-12 },
        [FT_ACT_RELU] = { 0.0, 0.0 },
        [FT_ACT_TANH] = { 0.0, 2e-7 },
        [FT_ACT_SILU] = { 4 * ROUNDING, 1e-12 },
    };
    float *x = random_floats(8, COUNT, 4.0);
    const float special[] = { 0.0f, -0.0f, 5.1f, -5.1f, 80.0f, -80.0f, 1e-30f, -1e-30f, 1e5f };
    memcpy(x, special, sizeof special);
    double *expected = must_have(COUNT, sizeof *expected);
    for (ft_activation activation = FT_ACT_NONE; activation <= FT_ACT_SILU; activation++) {
        float *found = map_floats(on, FT_OP_ACTIVATE, activation, x, HIDDEN);
        for (size_t i = 0; i < COUNT; i++)
            expected[i] = oracle_activation(ft_activation_name(activation), (double) x[i]);
        near(worst_error(found, expected, NULL, bounds[activation].relative,
                         bounds[activation].absolute, COUNT),
             0.0, 1.0, "%s: activate matches the oracle's %s", on->name,
             ft_activation_name(activation));
        free(found);
    }
    free(expected);
    free(x);
}

static void quantize_case(bench *on, const float *x, const double *value, size_t cols, float scale,
                          double slack, const char *what)
{
    size_t wrong = 0, n = TOKENS * cols;
    float *quantized = must_have(n, sizeof *quantized);
    for (int i = 0; i < 2; i++) {
        ft_dtype dtype = i == 0 ? FT_I8 : FT_F32;
        oneop t;
        oneop_begin(&t, on, FT_OP_QUANTIZE, &mixed_batch);
        oneop_in(&t, 0, FT_TOKENS, (int32_t) cols, FT_F32, 0.0f, x);
        oneop_quantized(&t, FT_TOKENS, (int32_t) cols, dtype, scale);
        oneop_run(&t, NULL, quantized);
        oneop_end(&t);
        wrong += wrong_quantized(quantized, dtype, value, (double) scale, slack, n);
        for (size_t k = 0; k < n && slack == 0.0; k++) {
            double code = dtype == FT_I8 ? ((int8_t *) quantized)[k] : (double) quantized[k];
            wrong += code != oracle_quantize(value[k], (double) scale);
        }
    }
    is_int((long long) wrong, 0, "%s: quantize %s", on->name, what);
    free(quantized);
}

void test_quantize(bench *on)
{
    float *x = random_floats(9, COUNT, 1.0);
    double *value = doubles_of(x, COUNT);
    quantize_case(on, x, value, HIDDEN, 2.5f / 127.0f, CODE_SLACK,
                  "rounds normal values to nearest and saturates the largest");
    /* A power of two divides exactly, so ties are exact: they round to even. */
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float) ((int) (i % 600) - 300) * 0.125f;
        value[i] = (double) x[i];
    }
    x[0] = INFINITY;
    x[1] = -INFINITY;
    value[0] = 1e30;
    value[1] = -1e30;
    quantize_case(on, x, value, 33, 0.25f, 0.0,
                  "rounds ties to even and saturates infinities to +-127");
    free(x);
    free(value);
}

void test_dequantize(bench *on)
{
    int8_t *quantized = random_int8(10, COUNT);
    float *faked = fake_quantized(quantized, COUNT), *found = must_have(COUNT, sizeof *found);
    for (int i = 0; i < 2; i++) {
        const float scale = 0.0371f;
        oneop t;
        oneop_begin(&t, on, FT_OP_DEQUANTIZE, &mixed_batch);
        oneop_in(&t, 0, FT_TOKENS, HIDDEN, i == 0 ? FT_I8 : FT_F32, scale,
                 i == 0 ? (const void *) quantized : faked);
        oneop_out(&t, FT_TOKENS, HIDDEN);
        oneop_run(&t, found, NULL);
        oneop_end(&t);
        int wrong = 0;
        for (size_t k = 0; k < COUNT; k++) /* the product is exact in double: it rounds once */
            wrong += found[k] != (float) ((double) scale * quantized[k]);
        is_int(wrong, 0, "%s: dequantize of %s is exact to one rounding", on->name,
               i == 0 ? "int8" : "fake-quantized values");
    }
    free(quantized);
    free(faked);
    free(found);
}

void test_l2_normalize(bench *on)
{
    enum { ROWS = 33 };
    float *x = random_floats(11, TOKENS * ROWS, 1.0);
    double *value, *expected = must_have(TOKENS * ROWS, sizeof *expected);
    memset(x + 2 * ROWS, 0, ROWS * sizeof *x);
    value = doubles_of(x, TOKENS * ROWS);
    for (size_t i = 0; i < TOKENS; i++)
        oracle_normalize(expected + i * ROWS, value + i * ROWS, ROWS);
    float *found = map_floats(on, FT_OP_L2_NORMALIZE, FT_ACT_NONE, x, ROWS);
    /* Squares, a sum in 16 SIMD lanes and a tree, root, division, product: 12 roundings. */
    near(worst_error(found, expected, NULL, 12 * ROUNDING, 0.0, TOKENS * ROWS), 0.0, 1.0,
         "%s: l2_normalize gives rows of length 1 and keeps a row of zeros", on->name);
    free(x);
    free(value);
    free(expected);
    free(found);
}

/* ---- Pool --------------------------------------------------------------------------------- */

/* The pooled value of column `col` of rows first .. end - 1, and the size of what was added. */
static double pooled(ft_pooling pooling, const float *x, size_t first, size_t end, size_t col,
                     double *size)
{
    double n = (double) (end - first), sum = 0.0, most = -(double) INFINITY;
    *size = 0.0;
    for (size_t row = first; row < end; row++) {
        double v = (double) x[row * HIDDEN + col];
        double factor = pooling == FT_POOL_MEAN ? 1.0 / n
                        : pooling == FT_POOL_MEAN_SQRT_LEN
                            ? 1.0 / sqrt(n)
                            : (double) (row - first + 1) / (n * (n + 1.0) / 2.0);
        sum += v * factor;
        *size += fabs(v * factor);
        most = v > most ? v : most;
    }
    return pooling == FT_POOL_FIRST  ? (double) x[first * HIDDEN + col]
           : pooling == FT_POOL_LAST ? (double) x[(end - 1) * HIDDEN + col]
           : pooling == FT_POOL_MAX  ? most
                                     : sum;
}

static void run_pool(bench *on, ft_pooling pooling, const float *x, float *found)
{
    oneop t;
    oneop_begin(&t, on, FT_OP_POOL, &mixed_batch);
    t.op.attr.pooling = pooling;
    oneop_in(&t, 0, FT_TOKENS, HIDDEN, FT_F32, 0.0f, x);
    oneop_out(&t, FT_SEQUENCES, HIDDEN);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
}

void test_pool(bench *on)
{
    float *x = random_floats(12, COUNT, 1.0);
    float found[SEQUENCES * HIDDEN];
    for (ft_pooling pooling = FT_POOL_FIRST; pooling < FT_NUM_POOLINGS; pooling++) {
        double expected[SEQUENCES * HIDDEN], size[SEQUENCES * HIDDEN];
        bool copies = pooling == FT_POOL_FIRST || pooling == FT_POOL_LAST || pooling == FT_POOL_MAX;
        for (size_t i = 0; i < SEQUENCES * HIDDEN; i++)
            expected[i] = pooled(pooling, x, (size_t) mixed_batch.start[i / HIDDEN],
                                 (size_t) mixed_batch.start[i / HIDDEN + 1], i % HIDDEN, &size[i]);
        run_pool(on, pooling, x, found);
        /* Some values are copied; a sum of up to 300 rows rounds as often, and four more times. */
        near(
            worst_error(found, expected, size, copies ? 0.0 : 304 * ROUNDING, 0.0, FT_COUNT(found)),
            0.0, 1.0, "%s: pool computes %s of each sequence", on->name, ft_pooling_name(pooling));
    }
    size_t row = (size_t) mixed_batch.start[1];
    x[row * HIDDEN] = NAN;
    run_pool(on, FT_POOL_MAX, x, found);
    ok(isnan(found[HIDDEN]), "%s: the maximum of a column with a NaN is NaN", on->name);
    free(x);
}

/* ---- Observe ------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* The CPU records magnitudes exactly, other devices their keys and the largest one exactly. */
static bool are_remembered(const bench *on, const uint32_t *found, const uint32_t *expected,
                           size_t n)
{
    if (on->backend == &ft_backend_cpu)
        return memcmp(found, expected, n * sizeof *found) == 0;
    for (size_t i = 0; i < n; i++)
        if (ft_count_key(found[i]) != ft_count_key(expected[i]))
            return false;
    return found[n - 1] == expected[n - 1];
}

void test_observe(bench *on)
{
    enum { COLS = 100, ZEROS = 77 };
    size_t n = TOKENS * COLS;
    float *x = random_floats(13, n, 1.0);
    uint32_t *magnitude = must_have(n, sizeof *magnitude);
    for (size_t i = 0; i < ZEROS; i++)
        x[i * 7] = i % 2 ? 0.0f : -0.0f;
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        memcpy(&magnitude[i], &size, sizeof size);
    }
    qsort(magnitude, n, sizeof *magnitude, ascending);

    ft_counts counts;
    if (!ft_counts_init(&counts))
        bail_out("out of memory: counters");
    oneop t;
    oneop_begin(&t, on, FT_OP_OBSERVE, &mixed_batch);
    t.counts = &counts;
    oneop_in(&t, 0, FT_TOKENS, COLS, FT_F32, 0.0f, x);
    oneop_run(&t, NULL, NULL);
    ft_counts_finalize(&counts);
    is_int((long long) counts.zeros, ZEROS, "%s: observe counts zeros", on->name);
    ok(counts.tail_used == n - ZEROS &&
           are_remembered(on, counts.tail, magnitude + ZEROS, n - ZEROS),
       "%s: observe records every other magnitude", on->name);
    oneop_run(&t, NULL, NULL);
    is_int((long long) ft_counts_total(&counts), 2 * (long long) n,
           "%s: observe adds the counts of a second run", on->name);
    t.counts = NULL;
    oneop_run(&t, NULL, NULL);
    is_int((long long) ft_counts_total(&counts), 2 * (long long) n,
           "%s: observe counts nothing without counters", on->name);
    oneop_end(&t);
    ft_counts_fini(&counts);
    free(x);
    free(magnitude);
}
