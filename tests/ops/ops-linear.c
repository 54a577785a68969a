/*
 * ops-linear.c - linear: float, fake-quantized and int8.
 *
 * The last two share no code, and must give the same bits for the same quantized values.
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

typedef struct shape {
    size_t m, n, k;
    bool bias;
    ft_activation activation;
} shape;

/* The expected result after the activation, and the sum of magnitudes of its terms before it. */
typedef struct expectation {
    double *value, *size;
} expectation;

static expectation expect(const shape *s, const double *x, const double *w, const double *bias)
{
    expectation e = { must_have(s->m * s->n, sizeof(double)),
                      must_have(s->m * s->n, sizeof(double)) };
    oracle_linear(e.value, e.size, x, w, bias, s->m, s->n, s->k);
    for (size_t i = 0; i < s->m * s->n; i++)
        e.value[i] = oracle_activation(ft_activation_name(s->activation), e.value[i]);
    return e;
}

static void free_expectation(expectation *e)
{
    free(e->value);
    free(e->size);
}

/*
 * The error bound of a result when the input of the activation has `roundings` of the size of its
 * terms: no activation is steeper than 1.13, and the worst of them adds 1.5e-6 and six roundings
 * (kernels/activation.h).
 */
static double relative_bound(double roundings)
{
    return (1.13 * roundings + 6) * ROUNDING;
}

static double absolute_bound(ft_activation activation)
{
    return activation == FT_ACT_NONE ? 0.0 : 1.6e-6;
}

/* ---- Float -------------------------------------------------------------------------------- */

/* By the float library, or batch-invariant: each row as if it were alone. */
static void float_case_by(bench *on, shape s, ft_dtype dtype, ft_rows rows, bool batch_invariant)
{
    int32_t start[2];
    float *x = random_floats(20, s.m * s.k, 1.0), *bias = random_floats(21, s.n, 3.0);
    float *found = must_have(s.m * s.n, sizeof *found);
    double *wide_w, *wide_x = doubles_of(x, s.m * s.k), *wide_bias = doubles_of(bias, s.n);
    ft_weight w = random_weight(22, s.n, s.k, dtype, &wide_w);
    expectation e = expect(&s, wide_x, wide_w, s.bias ? wide_bias : NULL);
    ft_batch batch = rows == FT_TOKENS ? single_batch(s.m, start) : mixed_batch;
    oneop t;
    oneop_begin(&t, on, FT_OP_LINEAR, &batch);
    t.plan.batch_invariant = batch_invariant;
    t.op.attr.activation = s.activation;
    oneop_in(&t, 0, rows, (int32_t) s.k, FT_F32, 0.0f, x);
    oneop_weight(&t, 0, w);
    if (s.bias)
        oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = s.n, .data = bias });
    oneop_out(&t, rows, (int32_t) s.n);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    /* In any order a sum of k products and a bias has at most k + 1 roundings of its size. */
    near(worst_error(found, e.value, e.size, relative_bound((double) s.k + 1),
                     absolute_bound(s.activation), s.m * s.n),
         0.0, 1.0, "%s: linear %zu x %zu by %zu %s%s with activation %s%s%s matches the oracle",
         on->name, s.m, s.k, s.n,
         dtype == FT_F32   ? "F32"
         : dtype == FT_F16 ? "F16"
                           : "BF16",
         s.bias ? "" : " without bias", ft_activation_name(s.activation),
         rows == FT_TOKENS ? "" : ", one row for each sequence,",
         batch_invariant ? ", batch-invariant," : "");
    free_expectation(&e);
    free_weight(&w);
    free(x);
    free(bias);
    free(found);
    free(wide_x);
    free(wide_w);
    free(wide_bias);
}

static void float_case(bench *on, shape s, ft_dtype dtype, ft_rows rows)
{
    float_case_by(on, s, dtype, rows, false);
    float_case_by(on, s, dtype, rows, true);
}

/* ---- Quantized ---------------------------------------------------------------------------- */

typedef struct quantized {
    shape s;
    float x_scale, out_scale;
    int8_t *x, *w, *w_col4;
    float *x_fake, *w_fake, *w_scale, *bias;
    expectation e;
} quantized;

/* Random int8 values; or all 127, whose sums are the largest. */
static int8_t *make_int8(uint64_t seed, size_t n, bool largest)
{
    int8_t *q = random_int8(seed, n);
    for (size_t i = 0; i < n && largest; i++)
        q[i] = 127;
    return q;
}

static quantized make_quantized(const shape *s, bool largest)
{
    quantized q = { .s = *s, .x_scale = 0.013f };
    rng r = { 30 };
    q.x = make_int8(31, s->m * s->k, largest);
    q.w = make_int8(32, s->n * s->k, largest);
    q.x_fake = fake_quantized(q.x, s->m * s->k);
    q.w_fake = fake_quantized(q.w, s->n * s->k);
    q.w_col4 = must_have(oracle_col4(NULL, NULL, s->n, s->k, 0), 1);
    oracle_col4(q.w_col4, q.w, s->n, s->k, 77); /* padding may hold any value */
    q.w_scale = must_have(s->n, sizeof *q.w_scale);
    q.bias = random_floats(33, s->n, 1.0);
    double *x = must_have(s->m * s->k, sizeof *x), *w = must_have(s->n * s->k, sizeof *w);
    double *bias = doubles_of(q.bias, s->n);
    for (size_t i = 0; i < s->m * s->k; i++)
        x[i] = (double) q.x_scale * q.x[i];
    for (size_t row = 0; row < s->n; row++) {
        q.w_scale[row] = (float) (rng_uniform(&r, 0.5, 1.5) / (73 * sqrt((double) s->k)));
        for (size_t i = row * s->k; i < (row + 1) * s->k; i++)
            w[i] = (double) q.w_scale[row] * q.w[i];
    }
    q.e = expect(s, x, w, s->bias ? bias : NULL);
    double amax = 0.0;
    for (size_t i = 0; i < s->m * s->n; i++)
        amax = fmax(amax, fabs(q.e.value[i]));
    q.out_scale = amax > 0.0 ? (float) (0.9 * amax / 127) : 1.0f; /* the largest saturate */
    free(x);
    free(w);
    free(bias);
    return q;
}

static void free_quantized(quantized *q)
{
    free(q->x);
    free(q->w);
    free(q->w_col4);
    free(q->x_fake);
    free(q->w_fake);
    free(q->w_scale);
    free(q->bias);
    free_expectation(&q->e);
}

/* `to` is a float dtype, or FT_I8: quantized values, stored as the operands are. */
static void run_quantized(bench *on, const quantized *q, bool fake, ft_dtype to, void *result)
{
    bool to_quantized = to == FT_I8;
    int32_t start[2];
    ft_batch batch = single_batch(q->s.m, start);
    ft_dtype dtype = fake ? FT_F32 : FT_I8;
    oneop t;
    oneop_begin(&t, on, FT_OP_LINEAR, &batch);
    t.op.attr.activation = q->s.activation;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) q->s.k, dtype, q->x_scale,
             fake ? (const void *) q->x_fake : q->x);
    oneop_weight(&t, 0,
                 (ft_weight){ .rows = q->s.n,
                              .cols = q->s.k,
                              .dtype = dtype,
                              .layout = fake ? FT_ROW : FT_COL4_4R2_8C,
                              .scale = q->w_scale,
                              .data = fake ? (const void *) q->w_fake : q->w_col4 });
    if (q->s.bias)
        oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = q->s.n, .data = q->bias });
    if (to_quantized)
        oneop_quantized(&t, FT_TOKENS, (int32_t) q->s.n, dtype, q->out_scale);
    else
        oneop_out_as(&t, FT_TOKENS, (int32_t) q->s.n, to);
    oneop_run(&t, to_quantized ? NULL : result, to_quantized ? result : NULL);
    oneop_end(&t);
}

/* The sum is converted to float, multiplied by a product of scales, and the bias is added. */
enum { EPILOGUE_ROUNDINGS = 4 };

static void to_floats(bench *on, const quantized *q, const char *what)
{
    size_t n = q->s.m * q->s.n;
    float *fake = must_have(n, sizeof *fake), *int8 = must_have(n, sizeof *int8);
    run_quantized(on, q, true, FT_F32, fake);
    run_quantized(on, q, false, FT_F32, int8);
    near(worst_error(fake, q->e.value, q->e.size, relative_bound(EPILOGUE_ROUNDINGS),
                     absolute_bound(q->s.activation), n),
         0.0, 1.0, "%s: fake-quantized linear %s to f32 matches the oracle", on->name, what);
    ok(memcmp(fake, int8, n * sizeof *fake) == 0,
       "%s: linear %s gives the same f32 bits in int8 as fake-quantized", on->name, what);
    free(fake);
    free(int8);
}

static void to_f16(bench *on, const quantized *q, const char *what)
{
    size_t n = q->s.m * q->s.n, wrong = 0;
    float *reals = must_have(n, sizeof *reals);
    uint16_t *fake = must_have(n, sizeof *fake), *int8 = must_have(n, sizeof *int8);
    run_quantized(on, q, false, FT_F32, reals);
    run_quantized(on, q, true, FT_F16, fake);
    run_quantized(on, q, false, FT_F16, int8);
    for (size_t i = 0; i < n; i++) {
        uint16_t expected = ft_f16_from_float(reals[i]);
        wrong += fake[i] != expected || int8[i] != expected;
    }
    is_int((long long) wrong, 0, "%s: linear %s to f16 gives the f32 result rounded", on->name,
           what);
    free(reals);
    free(fake);
    free(int8);
}

static void to_quantized(bench *on, const quantized *q, const char *what)
{
    size_t n = q->s.m * q->s.n, differ = 0;
    float *fake = must_have(n, sizeof *fake);
    int8_t *int8 = must_have(n, 1);
    double slack = 0.0;
    for (size_t i = 0; i < n; i++)
        slack = fmax(slack, relative_bound(EPILOGUE_ROUNDINGS) * q->e.size[i]);
    slack = (slack + absolute_bound(q->s.activation)) / (double) q->out_scale + CODE_SLACK;
    run_quantized(on, q, true, FT_I8, fake);
    run_quantized(on, q, false, FT_I8, int8);
    is_int((long long) wrong_quantized(fake, FT_F32, q->e.value, (double) q->out_scale, slack, n),
           0, "%s: fake-quantized linear %s quantizes its result correctly", on->name, what);
    for (size_t i = 0; i < n; i++)
        differ += fake[i] != (float) int8[i];
    is_int((long long) differ, 0,
           "%s: linear %s gives the same quantized values in int8 as fake-quantized", on->name,
           what);
    free(fake);
    free(int8);
}

static void quantized_case(bench *on, shape s, bool largest)
{
    char what[128];
    quantized q = make_quantized(&s, largest);
    snprintf(what, sizeof what, "%zu x %zu by %zu%s with activation %s%s", s.m, s.k, s.n,
             s.bias ? "" : " without bias", ft_activation_name(s.activation),
             largest ? " and all values 127" : "");
    to_floats(on, &q, what);
    to_f16(on, &q, what);
    to_quantized(on, &q, what);
    free_quantized(&q);
}

void test_linear(bench *on)
{
    float_case(on, (shape){ TOKENS, HIDDEN, HIDDEN, true, FT_ACT_NONE }, FT_F32, FT_TOKENS);
    float_case(on, (shape){ TOKENS, 45, HIDDEN, true, FT_ACT_GELU }, FT_F16, FT_TOKENS);
    float_case(on, (shape){ 257, 129, 33, false, FT_ACT_NONE }, FT_BF16, FT_TOKENS);
    float_case(on, (shape){ 9, 130, 26, true, FT_ACT_GELU_TANH }, FT_F32, FT_TOKENS);
    float_case(on, (shape){ 1, 7, 1, true, FT_ACT_RELU }, FT_F16, FT_TOKENS);
    float_case(on, (shape){ 31, 3, 70, false, FT_ACT_SILU }, FT_BF16, FT_TOKENS);
    float_case(on, (shape){ SEQUENCES, 1, HIDDEN, true, FT_ACT_TANH }, FT_F32, FT_SEQUENCES);

    quantized_case(on, (shape){ 300, HIDDEN, HIDDEN, true, FT_ACT_NONE }, false);
    quantized_case(on, (shape){ TOKENS, 45, 26, true, FT_ACT_GELU }, false);
    quantized_case(on, (shape){ 1, HIDDEN, HIDDEN, false, FT_ACT_GELU_TANH }, false);
    quantized_case(on, (shape){ 7, 33, 31, true, FT_ACT_RELU }, false);
    quantized_case(on, (shape){ 16, 8, 32, false, FT_ACT_NONE }, false);
    quantized_case(on, (shape){ 17, 9, 33, true, FT_ACT_TANH }, false);
    quantized_case(on, (shape){ 33, 7, 1, true, FT_ACT_SILU }, false);
    quantized_case(on, (shape){ 2, 1, 8, false, FT_ACT_GELU }, false);
    quantized_case(on, (shape){ 5, 64, 1024, true, FT_ACT_GELU }, false);
    quantized_case(on, (shape){ 4, 45, 1025, true, FT_ACT_NONE }, false);
    quantized_case(on, (shape){ 3, 130, 3072, true, FT_ACT_NONE }, false);
    quantized_case(on, (shape){ 9, 70, 4096, false, FT_ACT_GELU }, false);
    quantized_case(on, (shape){ 3, 9, 4096, true, FT_ACT_NONE }, true);
    quantized_case(on, (shape){ 2, 3, 65536, true, FT_ACT_NONE }, true);
}
