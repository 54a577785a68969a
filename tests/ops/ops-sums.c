/*
 * ops-sums.c - operations that add rows: embed, norm, add.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = TOKENS * HIDDEN };

/* ---- Embed -------------------------------------------------------------------------------- */

static void embed_case(bench *on, size_t cols, ft_dtype dtype, bool types, const char *what)
{
    rng r = { 5 };
    ft_weight tables[3];
    double *values[3];
    int32_t *index[3];
    size_t n = TOKENS * cols;
    double *expected = must_have(n, sizeof *expected), *size = must_have(n, sizeof *size);
    float *found = must_have(n, sizeof *found);
    int used = types ? 3 : 2;
    oneop t;
    oneop_begin(&t, on, FT_OP_EMBED, &mixed_batch);
    for (int i = 0; i < used; i++) {
        tables[i] = random_weight((uint64_t) i, i == 2 ? 2 : 50, cols, dtype, &values[i]);
        index[i] = must_have(TOKENS, sizeof *index[i]);
        for (size_t row = 0; row < TOKENS; row++) {
            index[i][row] = (int32_t) rng_below(&r, (uint32_t) tables[i].rows);
            for (size_t c = 0; c < cols; c++) {
                double v = values[i][(size_t) index[i][row] * cols + c];
                expected[row * cols + c] += v;
                size[row * cols + c] += fabs(v);
            }
        }
        oneop_in(&t, i, FT_TOKENS, 1, FT_I32, 0.0f, index[i]);
        oneop_weight(&t, i, tables[i]);
    }
    oneop_out(&t, FT_TOKENS, (int32_t) cols);
    oneop_run(&t, found, NULL);
    /* Two additions round. */
    near(worst_error(found, expected, size, 2 * ROUNDING, 0.0, n), 0.0, 1.0,
         "%s: embed of %s matches the oracle", on->name, what);
    t.plan.value[t.op.out].dtype = FT_F16;
    uint16_t *halves = must_have(n, sizeof *halves);
    oneop_run(&t, halves, NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += halves[i] != ft_f16_from_float(found[i]);
    is_int((long long) wrong, 0, "%s: embed of %s to f16 gives the f32 result rounded", on->name,
           what);
    free(halves);
    oneop_end(&t);
    for (int i = 0; i < used; i++) {
        free_weight(&tables[i]);
        free(values[i]);
        free(index[i]);
    }
    free(expected);
    free(size);
    free(found);
}

void test_embed(bench *on)
{
    embed_case(on, HIDDEN, FT_F32, true, "tokens, positions and token types from f32 tables");
    embed_case(on, HIDDEN, FT_F16, false, "tokens and positions from f16 tables");
    embed_case(on, 700, FT_BF16, true, "bf16 tables with 700 columns");
    embed_case(on, 1, FT_F16, true, "tables with one column");
}

/* ---- Norm --------------------------------------------------------------------------------- */

/* Mean and variance are sums in 16 SIMD lanes and a tree, then four more operations round. */
#define NORM_BOUND(cols) (((double) (cols) / 16 + 4 + 4) * ROUNDING)

typedef struct norm_data {
    size_t cols;
    float *x, *residual_f32, *weight, *bias;
    int8_t *residual_i8;
    float *residual_fake;
    double *expected, *size;
} norm_data;

static norm_data make_norm_data(size_t cols)
{
    size_t n = TOKENS * cols;
    norm_data d = { .cols = cols };
    d.x = random_floats(1, n, 2.0);
    d.residual_f32 = random_floats(2, n, 1.0);
    d.residual_i8 = random_int8(3, n);
    d.residual_fake = fake_quantized(d.residual_i8, n);
    d.weight = random_floats(4, cols, 1.0);
    d.bias = random_floats(5, cols, 0.5);
    d.expected = must_have(n, sizeof *d.expected);
    d.size = must_have(n, sizeof *d.size);
    return d;
}

static void free_norm_data(norm_data *d)
{
    free(d->x);
    free(d->residual_f32);
    free(d->residual_i8);
    free(d->residual_fake);
    free(d->weight);
    free(d->bias);
    free(d->expected);
    free(d->size);
}

/* The norm of x + scale * residual (or of x), and the sum of magnitudes of its terms. */
static void expect_norm(norm_data *d, const float *residual, double scale, double eps)
{
    double *row = must_have(d->cols, sizeof *row);
    double *weight = doubles_of(d->weight, d->cols), *bias = doubles_of(d->bias, d->cols);
    for (size_t i = 0; i < TOKENS; i++) {
        size_t at = i * d->cols;
        double square = 0.0, deviation = 0.0, mean = 0.0;
        for (size_t c = 0; c < d->cols; c++) {
            row[c] = (double) d->x[at + c];
            row[c] += residual == NULL ? 0.0 : scale * (double) residual[at + c];
            mean += row[c] / (double) d->cols;
            square += row[c] * row[c] / (double) d->cols;
        }
        for (size_t c = 0; c < d->cols; c++)
            deviation += (row[c] - mean) * (row[c] - mean) / (double) d->cols;
        oracle_norm(d->expected + at, row, weight, bias, eps, d->cols);
        /* An error of the sum is relative to the sum, divided by the deviation. */
        for (size_t c = 0; c < d->cols; c++)
            d->size[at + c] = fabs(d->expected[at + c]) + fabs(bias[c]) +
                              fabs(weight[c]) * (1.0 + sqrt(square / (deviation + eps)));
    }
    free(row);
    free(weight);
    free(bias);
}

/* The residual of the norm, and its results. */
typedef enum residual { NO_RESIDUAL, FLOATS, INT8, FAKED, RESIDUALS } residual;
typedef struct results {
    bool floats, quantized;
    ft_dtype dtype; /* of the quantized result */
} results;

/* Some values saturate with this scale. */
static const float norm_scale = 3.0f / 127.0f, residual_scale = 0.02f;

static void add_residual(oneop *t, const norm_data *d, residual kind)
{
    int32_t cols = (int32_t) d->cols;
    if (kind == FLOATS)
        oneop_in(t, 1, FT_TOKENS, cols, FT_F32, 0.0f, d->residual_f32);
    else if (kind == INT8)
        oneop_in(t, 1, FT_TOKENS, cols, FT_I8, residual_scale, d->residual_i8);
    else if (kind == FAKED)
        oneop_in(t, 1, FT_TOKENS, cols, FT_F32, residual_scale, d->residual_fake);
}

/* The number of wrong results; `found` keeps the float result of an earlier run. */
static size_t run_norm(bench *on, const norm_data *d, residual kind, results write, float *found)
{
    size_t n = TOKENS * d->cols, wrong = 0;
    float *quantized = must_have(n, sizeof *quantized);
    oneop t;
    oneop_begin(&t, on, FT_OP_NORM, &mixed_batch);
    t.op.attr.eps = 1e-5f;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) d->cols, FT_F32, 0.0f, d->x);
    add_residual(&t, d, kind);
    oneop_weight(&t, 0, (ft_weight){ .rows = 1, .cols = d->cols, .data = d->weight });
    oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = d->cols, .data = d->bias });
    if (write.floats)
        oneop_out(&t, FT_TOKENS, (int32_t) d->cols);
    if (write.quantized)
        oneop_quantized(&t, FT_TOKENS, (int32_t) d->cols, write.dtype, norm_scale);
    oneop_run(&t, found, quantized);
    oneop_end(&t);
    wrong += worst_error(found, d->expected, d->size, NORM_BOUND(d->cols), 0.0, n) > 1.0;
    if (write
            .quantized) { /* quantized from the float result that the norm writes, or would write */
        double *value = doubles_of(found, n);
        wrong += wrong_quantized(quantized, write.dtype, value, (double) norm_scale, CODE_SLACK, n);
        free(value);
    }
    free(quantized);
    return wrong;
}

static void norm_case(bench *on, norm_data *d, residual kind, const char *what)
{
    static const results kinds[] = { { true, false, FT_F32 },
                                     { true, true, FT_F32 },
                                     { true, true, FT_I8 },
                                     { false, true, FT_F32 },
                                     { false, true, FT_I8 } };
    float *found = must_have(TOKENS * d->cols, sizeof *found);
    size_t wrong = 0;
    const float *added = kind == FLOATS ? d->residual_f32 : d->residual_fake;
    expect_norm(d, kind == NO_RESIDUAL ? NULL : added,
                kind == FLOATS ? 1.0 : (double) residual_scale, (double) 1e-5f);
    for (size_t i = 0; i < FT_COUNT(kinds); i++)
        wrong += run_norm(on, d, kind, kinds[i], found);
    is_int(
        (long long) wrong, 0,
        "%s: norm with %s and %zu columns matches the oracle in float, quantized and both results",
        on->name, what, d->cols);
    free(found);
}

void test_norm(bench *on)
{
    static const char *const names[RESIDUALS] = { "no residual", "a float residual",
                                                  "an int8 residual", "a fake-quantized residual" };
    norm_data d = make_norm_data(HIDDEN);
    for (int kind = NO_RESIDUAL; kind < RESIDUALS; kind++)
        norm_case(on, &d, (residual) kind, names[kind]);
    free_norm_data(&d);
    d = make_norm_data(33);
    norm_case(on, &d, INT8, "an int8 residual");
    free_norm_data(&d);
}

/* ---- Add ---------------------------------------------------------------------------------- */

static void add_case(bench *on, residual kind, const char *what)
{
    norm_data d = make_norm_data(HIDDEN);
    float *found = must_have(COUNT, sizeof *found);
    oneop t;
    oneop_begin(&t, on, FT_OP_ADD, &mixed_batch);
    oneop_in(&t, 0, FT_TOKENS, HIDDEN, FT_F32, 0.0f, d.x);
    add_residual(&t, &d, kind);
    oneop_out(&t, FT_TOKENS, HIDDEN);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    for (size_t i = 0; i < COUNT; i++) {
        double other = kind == FLOATS ? (double) d.residual_f32[i]
                                      : (double) residual_scale * d.residual_i8[i];
        d.expected[i] = (double) d.x[i] + other;
        d.size[i] = fabs((double) d.x[i]) + fabs(other);
    }
    /* The sum rounds, and before it the product of quantized value and scale. */
    near(worst_error(found, d.expected, d.size, (kind == FLOATS ? 1 : 2) * ROUNDING, 0.0, COUNT),
         0.0, 1.0, "%s: add of f32 and %s matches the oracle", on->name, what);
    free(found);
    free_norm_data(&d);
}

void test_add(bench *on)
{
    add_case(on, FLOATS, "f32");
    add_case(on, INT8, "int8");
    add_case(on, FAKED, "fake-quantized values");
}
