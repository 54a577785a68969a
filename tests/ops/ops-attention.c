/*
 * ops-attention.c - attention: float, calibration, fake-quantized and int8.
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

static oracle_attention problem(const ft_batch *batch, size_t heads, size_t cols)
{
    return (oracle_attention){ .start = batch->start,
                               .sequences = batch->sequences,
                               .heads = heads,
                               .cols = cols,
                               .score_scale = 1.0 / sqrt((double) (cols / heads)),
                               .value_scale = 1.0 };
}

static void begin(oneop *t, bench *on, const ft_batch *batch, const oracle_attention *a)
{
    oneop_begin(t, on, FT_OP_ATTENTION, batch);
    t->op.attr.heads = (int32_t) a->heads;
    t->op.attr.softmax_scale = (float) a->score_scale;
}

/* ---- Float -------------------------------------------------------------------------------- */

typedef struct float_data {
    float *q, *k, *v;
    double *wide_q, *wide_k, *wide_v, *sizes_v;
    double *context, *size, *probs;
    double score; /* the bound of all terms of a score */
} float_data;

static double largest_score(const oracle_attention *a, size_t tokens)
{
    double q = 0.0, k = 0.0;
    for (size_t i = 0; i < tokens * a->cols; i++) {
        q = fmax(q, fabs(a->q[i]));
        k = fmax(k, fabs(a->k[i]));
    }
    return q * k * (double) (a->cols / a->heads) * a->score_scale;
}

static float_data make_floats(oracle_attention *a, size_t tokens)
{
    size_t n = tokens * a->cols;
    float_data d = { .q = random_floats(40, n, 1.0),
                     .k = random_floats(41, n, 1.0),
                     .v = random_floats(42, n, 1.0) };
    a->q = d.wide_q = doubles_of(d.q, n);
    a->k = d.wide_k = doubles_of(d.k, n);
    d.wide_v = doubles_of(d.v, n);
    d.sizes_v = doubles_of(d.v, n);
    for (size_t i = 0; i < n; i++)
        d.sizes_v[i] = fabs(d.sizes_v[i]);
    d.context = must_have(n, sizeof *d.context);
    d.size = must_have(n, sizeof *d.size);
    d.probs = must_have(oracle_probabilities(a), sizeof *d.probs);
    a->v = d.sizes_v;
    oracle_attend(d.size, NULL, a);
    a->v = d.wide_v;
    oracle_attend(d.context, d.probs, a);
    d.score = largest_score(a, tokens);
    return d;
}

static void free_floats(float_data *d)
{
    void *all[] = { d->q,      d->k,       d->v,       d->wide_q, d->wide_k,
                    d->wide_v, d->sizes_v, d->context, d->size,   d->probs };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* An error of a score is a relative error of its probability, and again of their sum. */
static double probability_bound(const oracle_attention *a, const float_data *d, size_t longest)
{
    double score = ((double) (a->cols / a->heads) + 2) * ROUNDING * d->score;
    return 2 * (score + 4 * ROUNDING) + ((double) longest / 16 + 6) * ROUNDING;
}

static void float_case(bench *on, const ft_batch *batch, size_t heads, size_t cols,
                       const char *what)
{
    oracle_attention a = problem(batch, heads, cols);
    float_data d = make_floats(&a, batch->tokens);
    float *found = must_have(batch->tokens * cols, sizeof *found);
    const float *const in[] = { d.q, d.k, d.v };
    oneop t;
    begin(&t, on, batch, &a);
    for (int i = 0; i < 3; i++)
        oneop_in(&t, i, FT_TOKENS, (int32_t) cols, FT_F32, 0.0f, in[i]);
    oneop_inner(&t);
    oneop_out(&t, FT_TOKENS, (int32_t) cols);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    double bound = probability_bound(&a, &d, batch->longest) + (double) batch->longest * ROUNDING;
    near(worst_error(found, d.context, d.size, bound, 0.0, batch->tokens * cols), 0.0, 1.0,
         "%s: float attention with %s matches the oracle", on->name, what);
    free(found);
    free_floats(&d);
}

/* ---- Calibration -------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

/* Calibration counts each probability once, however the kernel splits the work. */
static void observed_case(bench *on)
{
    static const int32_t start[] = { 0, 1, 66, 166 };
    const ft_batch batch = { .tokens = 166, .sequences = 3, .longest = 100, .start = start };
    oracle_attention a = problem(&batch, 2, 16);
    float_data d = make_floats(&a, batch.tokens);
    size_t n = oracle_probabilities(&a);
    ft_counts counts;
    if (!ft_counts_init(&counts))
        bail_out("out of memory: counters");
    float *found = must_have(batch.tokens * a.cols, sizeof *found);
    const float *const in[] = { d.q, d.k, d.v };
    oneop t;
    begin(&t, on, &batch, &a);
    t.counts = &counts;
    for (int i = 0; i < 3; i++)
        oneop_in(&t, i, FT_TOKENS, (int32_t) a.cols, FT_F32, 0.0f, in[i]);
    oneop_inner(&t);
    oneop_out(&t, FT_TOKENS, (int32_t) a.cols);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    ft_counts_finalize(&counts);
    is_int((long long) ft_counts_total(&counts), (long long) n,
           "%s: attention counts every probability once", on->name);
    qsort(d.probs, n, sizeof *d.probs, by_size);
    float *seen = must_have(n, sizeof *seen);
    memcpy(seen, counts.tail, counts.tail_used * sizeof *seen);
    /* Devices other than the CPU keep the upper bits of a magnitude. */
    double bound = probability_bound(&a, &d, batch.longest) +
                   (on->backend == &ft_backend_cpu ? 0.0 : ldexp(1.0, -FT_COUNT_MANTISSA));
    ok(counts.tail_used == n && worst_error(seen, d.probs, NULL, bound, 0.0, n) <= 1,
       "%s: attention counts the probabilities of the oracle", on->name);
    free(seen);
    free(found);
    ft_counts_fini(&counts);
    free_floats(&d);
}

/* ---- Quantized ---------------------------------------------------------------------------- */

/* Scales of queries and keys give scores a deviation of 2; the others are typical. */
typedef struct quantized {
    int8_t *code[3];
    float *fake[3];
    float scale[3], out_scale;
    double *context, *doubt;
} quantized;

static quantized make_quantized(const oracle_attention *a, size_t tokens)
{
    double dim = (double) (a->cols / a->heads);
    float spread = (float) (sqrt(2.0 / (sqrt(dim) * a->score_scale)) / 73.0);
    quantized q = { .scale = { spread, spread, 0.02f }, .out_scale = 1.5f / 127.0f };
    for (int i = 0; i < 3; i++)
        q.code[i] = random_int8(50 + (uint64_t) i, tokens * a->cols);
    return q;
}

/* Fills in what the quantized values determine: their float form, and the context. */
static void finish_quantized(quantized *q, oracle_attention a, size_t tokens)
{
    double *wide[3];
    size_t n = tokens * a.cols;
    for (int i = 0; i < 3; i++) {
        q->fake[i] = fake_quantized(q->code[i], n);
        wide[i] = doubles_of(q->fake[i], n);
    }
    a.q = wide[0];
    a.k = wide[1];
    a.v = wide[2];
    a.score_scale *= (double) q->scale[0] * (double) q->scale[1];
    a.value_scale = (double) q->scale[2];
    a.quantized = true;
    a.doubt = q->doubt = must_have(n, sizeof *q->doubt);
    q->context = must_have(n, sizeof *q->context);
    oracle_attend(q->context, NULL, &a);
    for (int i = 0; i < 3; i++)
        free(wide[i]);
}

static void free_quantized(quantized *q)
{
    for (int i = 0; i < 3; i++) {
        free(q->code[i]);
        free(q->fake[i]);
    }
    free(q->context);
    free(q->doubt);
}

static void run_quantized(bench *on, const ft_batch *batch, const oracle_attention *a,
                          const quantized *q, bool fake, bool to_quantized, void *result)
{
    oneop t;
    ft_dtype dtype = fake ? FT_F32 : FT_I8;
    begin(&t, on, batch, a);
    for (int i = 0; i < 3; i++)
        oneop_in(&t, i, FT_TOKENS, (int32_t) a->cols, dtype, q->scale[i],
                 fake ? (const void *) q->fake[i] : q->code[i]);
    oneop_inner(&t);
    if (to_quantized)
        oneop_quantized(&t, FT_TOKENS, (int32_t) a->cols, dtype, q->out_scale);
    else
        oneop_out(&t, FT_TOKENS, (int32_t) a->cols);
    oneop_run(&t, to_quantized ? NULL : result, to_quantized ? result : NULL);
    oneop_end(&t);
}

/*
 * The kernels' exponential is off by less than 0.05 of a quantization step, so a probability near
 * the middle of two quantized values may be rounded to the other one than the oracle's.
 */
static void is_context(const float *found, const quantized *q, size_t n, double exact,
                       const char *device, const char *what)
{
    size_t wrong = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
        double error = fabs((double) found[i] - q->context[i]);
        double rounding = exact * fabs(q->context[i]);
        moved += error <= rounding ? 0 : 1;
        wrong += error <= rounding + 1.001 * q->doubt[i] ? 0 : 1;
    }
    ok(wrong == 0, "%s: fake-quantized attention with %s to f32 matches the oracle", device, what);
    if (wrong > 0)
        diag("of %zu values %zu differ from the oracle, %zu of them too much", n, moved, wrong);
}

static void quantized_case(bench *on, const ft_batch *batch, const oracle_attention *a,
                           const quantized *q, const char *what)
{
    size_t n = batch->tokens * a->cols, differ = 0, wrong = 0;
    float *fake = must_have(n, sizeof *fake), *int8 = must_have(n, sizeof *int8);
    run_quantized(on, batch, a, q, true, false, fake);
    run_quantized(on, batch, a, q, false, false, int8);
    /* The sum is converted to float and multiplied by a quotient: three roundings. */
    is_context(fake, q, n, 3 * ROUNDING, on->name, what);
    ok(memcmp(fake, int8, n * sizeof *fake) == 0,
       "%s: attention with %s gives the same f32 bits in int8 as fake-quantized", on->name, what);

    double *real = doubles_of(fake, n);
    run_quantized(on, batch, a, q, true, true, fake);
    run_quantized(on, batch, a, q, false, true, int8);
    wrong = wrong_quantized(fake, FT_F32, real, (double) q->out_scale, CODE_SLACK, n);
    is_int((long long) wrong, 0,
           "%s: fake-quantized attention with %s quantizes its result correctly", on->name, what);
    for (size_t i = 0; i < n; i++)
        differ += fake[i] != (float) ((int8_t *) int8)[i];
    is_int((long long) differ, 0,
           "%s: attention with %s gives the same quantized values in int8 as fake-quantized",
           on->name, what);
    free(real);
    free(fake);
    free(int8);
}

static void random_case(bench *on, const ft_batch *batch, size_t heads, size_t cols,
                        const char *what)
{
    oracle_attention a = problem(batch, heads, cols);
    quantized q = make_quantized(&a, batch->tokens);
    finish_quantized(&q, a, batch->tokens);
    quantized_case(on, batch, &a, &q, what);
    free_quantized(&q);
}

/* All probabilities and values are 127 or 126: sums are odd and exceed the exact range of f32. */
static void largest_case(bench *on)
{
    enum { LENGTH = 1100, COLS = 8 };
    int32_t start[2];
    ft_batch batch = single_batch(LENGTH, start);
    oracle_attention a = problem(&batch, 1, COLS);
    quantized q = make_quantized(&a, LENGTH);
    memset(q.code[0], 0, LENGTH * COLS);
    for (size_t i = 0; i < LENGTH * COLS; i++)
        q.code[2][i] = (int8_t) (126 + rng_bits(&(rng){ i }) % 2);
    finish_quantized(&q, a, LENGTH);
    quantized_case(on, &batch, &a, &q, "sums beyond 2^24");
    free_quantized(&q);
}

void test_attention(bench *on)
{
    static const int32_t edges[] = { 0, 64, 129, 130, 133 };
    const ft_batch odd = { .tokens = 133, .sequences = 4, .longest = 65, .start = edges };
    float_case(on, &mixed_batch, HEADS, HIDDEN, "12 heads of 26");
    float_case(on, &odd, 3, 3, "3 heads of 1");
    float_case(on, &odd, 1, 64, "1 head of 64");
    observed_case(on);
    random_case(on, &mixed_batch, HEADS, HIDDEN, "12 heads of 26");
    random_case(on, &odd, 3, 3, "3 heads of 1");
    random_case(on, &odd, 2, 66, "2 heads of 33");
    random_case(on, &odd, 1, 64, "1 head of 64");
    largest_case(on);
}
