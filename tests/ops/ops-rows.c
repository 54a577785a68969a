/*
 * ops-rows.c - row operations of decoders: gate, gather_rows, norms that store the sum, row-scaled
 * int8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = TOKENS * HIDDEN };

/* Normal numbers in `dtype`; *value receives their values. */
static void *random_reals(uint64_t seed, size_t n, ft_dtype dtype, double **value)
{
    float *x = random_floats(seed, n, 2.0);
    uint16_t *half = must_have(n, sizeof(float));
    *value = doubles_of(x, n);
    for (size_t i = 0; i < n && dtype != FT_F32; i++) {
        half[i] = dtype == FT_F16 ? ft_f16_from_float(x[i]) : ft_bf16_from_float(x[i]);
        (*value)[i] = number_of(half, dtype, i);
    }
    if (dtype == FT_F32)
        memcpy(half, x, n * sizeof *x);
    free(x);
    return half;
}

/*
 * The number of wrong quantized values and row scales, where a row's values may be off by
 * `relative`: a scale is the amax divided by 127, a quantized value the nearest integer.
 */
static size_t wrong_rows(const void *quantized, ft_dtype dtype, const float *scales,
                         const double *value, double relative, size_t cols)
{
    size_t wrong = 0, bytes = ft_dtype_size(dtype);
    for (size_t row = 0; row < TOKENS; row++, value += cols) {
        double amax = 0.0, scale = (double) scales[row];
        for (size_t i = 0; i < cols; i++)
            amax = fmax(amax, fabs(value[i]));
        wrong += is_far(scale, amax / 127, amax / 127 * (relative + 2 * ROUNDING));
        const void *own = (const char *) quantized + row * cols * bytes;
        if (scale > 0.0)
            wrong += wrong_quantized(own, dtype, value, scale, 127 * relative + CODE_SLACK, cols);
        for (size_t i = 0; i < cols && !(scale > 0.0); i++)
            wrong += number_of(own, dtype, i) != 0.0;
    }
    return wrong;
}

/* ---- Gates -------------------------------------------------------------------------------- */

static oneop gate_of(bench *on, ft_dtype dtype, size_t cols, const void *a, const void *b)
{
    oneop t;
    oneop_begin(&t, on, FT_OP_GATE, &mixed_batch);
    t.op.attr.activation = FT_ACT_SILU;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) cols, dtype, 0.0f, a);
    oneop_in(&t, 1, FT_TOKENS, (int32_t) cols, dtype, 0.0f, b);
    return t;
}

/* silu has five roundings (kernels/activation.h), the product one more. */
#define GATE_ROUNDINGS 8

static void gate_case(bench *on, ft_dtype dtype, size_t cols)
{
    size_t n = TOKENS * cols;
    double *a_value, *b_value;
    char *a = random_reals(70, n, dtype, &a_value), *b = random_reals(71, n, dtype, &b_value);
    void *found = must_have(n, sizeof(float)), *quantized = must_have(n, sizeof(float));
    float *reals = must_have(n, sizeof *reals), *scales = must_have(TOKENS, sizeof *scales);
    const float scale = 9.0f / 127.0f;
    memset(a + 3 * cols * ft_dtype_size(dtype), 0, cols * ft_dtype_size(dtype)); /* a row of 0 */
    for (size_t i = 3 * cols; i < 4 * cols; i++)
        a_value[i] = 0.0;
    for (size_t i = 0; i < n; i++)
        a_value[i] = oracle_activation("silu", a_value[i]) * b_value[i];

    oneop t = gate_of(on, dtype, cols, a, b);
    oneop_out_as(&t, FT_TOKENS, (int32_t) cols, dtype);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    for (size_t i = 0; i < n; i++)
        reals[i] = (float) number_of(found, dtype, i);
    near(worst_error(reals, a_value, NULL, GATE_ROUNDINGS * ROUNDING + rounding_in(dtype), 0x1p-24,
                     n),
         0.0, 1.0, "%s: gate of %s rows of %zu columns matches the oracle", on->name,
         ft_dtype_name(dtype), cols);

    size_t wrong_fixed = 0, wrong_dynamic = 0;
    for (int faked = 0; faked < 2; faked++) {
        ft_dtype as = faked ? FT_F32 : FT_I8;
        t = gate_of(on, dtype, cols, a, b);
        oneop_quantized(&t, FT_TOKENS, (int32_t) cols, as, scale);
        oneop_run(&t, NULL, quantized);
        oneop_end(&t);
        wrong_fixed += wrong_quantized(quantized, as, a_value, (double) scale,
                                       127 * GATE_ROUNDINGS * ROUNDING + CODE_SLACK, n);
        t = gate_of(on, dtype, cols, a, b);
        oneop_dynamic_quantized(&t, FT_TOKENS, (int32_t) cols, as);
        t.scales = scales;
        oneop_run(&t, NULL, quantized);
        oneop_end(&t);
        wrong_dynamic +=
            wrong_rows(quantized, as, scales, a_value, GATE_ROUNDINGS * ROUNDING, cols);
    }
    is_int((long long) wrong_fixed, 0, "%s: gate of %s quantizes its result with a static scale",
           on->name, ft_dtype_name(dtype));
    is_int((long long) wrong_dynamic, 0, "%s: gate of %s quantizes its result with row scales",
           on->name, ft_dtype_name(dtype));
    free(a);
    free(b);
    free(a_value);
    free(b_value);
    free(found);
    free(quantized);
    free(reals);
    free(scales);
}

void test_gate(bench *on)
{
    gate_case(on, FT_F32, HIDDEN);
    gate_case(on, FT_F16, 45);
    gate_case(on, FT_BF16, 130);
}

/* ---- Gathered rows ------------------------------------------------------------------------ */

void test_gather_rows(bench *on)
{
    static const int32_t select[] = { 0, 7, 8, 200, TOKENS - 1 };
    static const ft_dtype dtypes[] = { FT_F32, FT_F16, FT_BF16 };
    enum { SELECTED = FT_COUNT(select), COLS = 33 };
    for (size_t i = 0; i < FT_COUNT(dtypes); i++) {
        size_t bytes = COLS * ft_dtype_size(dtypes[i]), wrong = 0;
        double *value;
        char *x = random_reals(72, TOKENS * COLS, dtypes[i], &value);
        char *found = must_have(SELECTED, bytes);
        ft_batch batch = mixed_batch;
        batch.selected = SELECTED;
        batch.selected_rows = select;
        oneop t;
        oneop_begin(&t, on, FT_OP_GATHER_ROWS, &batch);
        t.limits =
            (ft_limits){ .context = FT_PAGE_TOKENS, .pages = 1 }; /* only decoders select rows */
        oneop_in(&t, 0, FT_TOKENS, COLS, dtypes[i], 0.0f, x);
        oneop_out_as(&t, FT_SELECTED, COLS, dtypes[i]);
        oneop_run(&t, found, NULL);
        oneop_end(&t);
        for (size_t row = 0; row < SELECTED; row++)
            wrong += memcmp(found + row * bytes, x + (size_t) select[row] * bytes, bytes) != 0;
        is_int((long long) wrong, 0, "%s: gather_rows copies selected rows of %s", on->name,
               ft_dtype_name(dtypes[i]));
        free(x);
        free(value);
        free(found);
    }
}

/* ---- Norms of sums ------------------------------------------------------------------------ */

typedef struct norm_case {
    ft_dtype x, residual, second, out; /* FT_BOOL: none */
    size_t cols;
} norm_case;

/* The norm of the stored sum, if it is stored; `bias` NULL: an RMS norm. */
static void expect_norm(double *y, const double *x, const float *weight, const float *bias,
                        size_t cols)
{
    for (size_t row = 0; row < TOKENS; row++, x += cols, y += cols) {
        double mean = 0.0, square = 0.0;
        for (size_t i = 0; i < cols && bias != NULL; i++)
            mean += x[i] / (double) cols;
        for (size_t i = 0; i < cols; i++)
            square += (x[i] - mean) * (x[i] - mean);
        for (size_t i = 0; i < cols; i++)
            y[i] = (x[i] - mean) / sqrt(square / (double) cols + 1e-5) * (double) weight[i] +
                   (bias != NULL ? (double) bias[i] : 0.0);
    }
}

static void norm_of_sum(bench *on, const norm_case *c, ft_norm_kind kind)
{
    const char *what = kind == FT_NORM_RMS ? "RMS norm" : "layer norm";
    size_t n = TOKENS * c->cols;
    bool adds = c->residual != FT_BOOL, keeps = c->second != FT_BOOL;
    double *value, *other, *expected = must_have(n, sizeof *expected);
    void *x = random_reals(73, n, c->x, &value);
    void *residual = random_reals(74, n, adds ? c->residual : FT_F32, &other);
    float *weight = random_floats(75, c->cols, 1.0);
    float *bias = kind == FT_NORM_LAYER ? random_floats(77, c->cols, 1.0) : NULL,
          *scales = must_have(TOKENS, sizeof *scales);
    float *found = must_have(n, sizeof *found), *sum = must_have(n, sizeof *sum);
    void *out = must_have(n, sizeof(float)), *second = must_have(n, sizeof(float));
    int8_t *quantized = must_have(n, 1);
    oneop t;
    oneop_begin(&t, on, FT_OP_NORM, &mixed_batch);
    t.op.attr.norm = kind;
    t.op.attr.eps = 1e-5f;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) c->cols, c->x, 0.0f, x);
    if (adds)
        oneop_in(&t, 1, FT_TOKENS, (int32_t) c->cols, c->residual, 0.0f, residual);
    oneop_weight(&t, 0, (ft_weight){ .rows = 1, .cols = c->cols, .data = weight });
    if (bias != NULL)
        oneop_weight(&t, 1, (ft_weight){ .rows = 1, .cols = c->cols, .data = bias });
    oneop_out_as(&t, FT_TOKENS, (int32_t) c->cols, c->out);
    oneop_dynamic_quantized(&t, FT_TOKENS, (int32_t) c->cols, FT_I8);
    if (keeps)
        oneop_second(&t, FT_TOKENS, (int32_t) c->cols, c->second);
    t.second = second;
    t.scales = scales;
    oneop_run(&t, out, quantized);
    oneop_end(&t);

    for (size_t i = 0; i < n && adds; i++)
        value[i] = (double) (float) (value[i] + other[i]);
    if (keeps) {
        for (size_t i = 0; i < n; i++)
            sum[i] = (float) number_of(second, c->second, i);
        near(worst_error(sum, value, NULL, ROUNDING + rounding_in(c->second), 0x1p-24, n), 0.0, 1.0,
             "%s: %s stores the sum with its residual in %s", on->name, what,
             ft_dtype_name(c->second));
        for (size_t i = 0; i < n; i++)
            value[i] = (double) sum[i];
    }
    expect_norm(expected, value, weight, bias, c->cols);
    for (size_t i = 0; i < n; i++)
        found[i] = (float) number_of(out, c->out, i);
    /*
     * Each square has a rounding, in chains of cols / 256 and then 8 in a tree; the root halves
     * them.  A mean or a bias is added to numbers of about 1, whose sum may be small.
     */
    double relative = ((double) c->cols / 256 + 8 + 8) * ROUNDING;
    double absolute = bias != NULL ? 8 * relative : 0x1p-24;
    near(worst_error(found, expected, NULL, relative + rounding_in(c->out), absolute, n), 0.0, 1.0,
         "%s: %s of %s%s with %zu columns to %s matches the oracle", on->name, what,
         ft_dtype_name(c->x), adds ? " plus a residual" : "", c->cols, ft_dtype_name(c->out));
    for (size_t i = 0; i < n; i++)
        expected[i] = (double) found[i]; /* the stored values are quantized */
    is_int((long long) wrong_rows(quantized, FT_I8, scales, expected, 0.0, c->cols), 0,
           "%s: %s quantizes its result with row scales", on->name, what);
    void *all[] = { x,   residual, weight,    bias,  scales, found,   sum,
                    out, second,   quantized, value, other,  expected };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* ---- Norms of heads ----------------------------------------------------------------------- */

/* A head is normed as a row of its own would be, in every dtype. */
static void head_norm_case(bench *on, size_t heads, size_t size, ft_dtype in, ft_dtype out)
{
    size_t cols = heads * size, n = TOKENS * cols;
    double *value, *expected = must_have(n, sizeof *expected);
    void *x = random_reals(78, n, in, &value), *y = must_have(n, sizeof(float));
    float *weight = random_floats(79, size, 1.0), *found = must_have(n, sizeof *found);
    oneop t;
    oneop_begin(&t, on, FT_OP_HEAD_NORM, &mixed_batch);
    t.op.attr.heads = (int32_t) heads;
    t.op.attr.eps = 1e-5f;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) cols, in, 0.0f, x);
    oneop_weight(&t, 0, (ft_weight){ .rows = 1, .cols = size, .data = weight });
    oneop_out_as(&t, FT_TOKENS, (int32_t) cols, out);
    oneop_run(&t, y, NULL);
    oneop_end(&t);
    for (size_t head = 0; head < heads; head++)
        for (size_t row = 0; row < TOKENS; row++) {
            const double *from = value + row * cols + head * size;
            double square = 0.0;
            for (size_t i = 0; i < size; i++)
                square += from[i] * from[i] / (double) size;
            for (size_t i = 0; i < size; i++)
                expected[row * cols + head * size + i] =
                    from[i] / sqrt(square + 1e-5) * (double) weight[i];
        }
    for (size_t i = 0; i < n; i++)
        found[i] = (float) number_of(y, out, i);
    near(worst_error(found, expected, NULL,
                     ((double) size / 256 + 16) * ROUNDING + rounding_in(out), 0x1p-24, n),
         0.0, 1.0, "%s: head_norm: %zu heads of %zu columns, %s to %s", on->name, heads, size,
         ft_dtype_name(in), ft_dtype_name(out));
    void *all[] = { value, expected, x, y, weight, found };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

void test_head_norm(bench *on)
{
    head_norm_case(on, 3, 24, FT_F32, FT_F32);
    head_norm_case(on, 2, 128, FT_F16, FT_F16);
    head_norm_case(on, 1, 260, FT_F32, FT_F16);
    head_norm_case(on, 5, 7, FT_BF16, FT_BF16);
}

/* ---- Rows that become quantized, and linears of them ------------------------------------------
 */

static void dynamic_quantize(bench *on, ft_dtype dtype)
{
    double *value;
    void *x = random_reals(76, COUNT, dtype, &value), *quantized = must_have(COUNT, sizeof(float));
    float *scales = must_have(TOKENS, sizeof *scales);
    size_t wrong = 0;
    for (int faked = 0; faked < 2; faked++) {
        oneop t;
        oneop_begin(&t, on, FT_OP_QUANTIZE, &mixed_batch);
        oneop_in(&t, 0, FT_TOKENS, HIDDEN, dtype, 0.0f, x);
        oneop_dynamic_quantized(&t, FT_TOKENS, HIDDEN, faked ? FT_F32 : FT_I8);
        t.scales = scales;
        oneop_run(&t, NULL, quantized);
        oneop_end(&t);
        wrong += wrong_rows(quantized, faked ? FT_F32 : FT_I8, scales, value, 0.0, HIDDEN);
    }
    is_int((long long) wrong, 0, "%s: quantize gives each row of %s its own scale", on->name,
           ft_dtype_name(dtype));
    free(x);
    free(value);
    free(quantized);
    free(scales);
}

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* QUANTIZE by row, then LINEAR: the quantized values, their scales, and the result of `rows` rows.
 */
static void run_two(bench *on, const ft_weight *weight, const float *x, size_t rows, bool faked,
                    int threads, float *y, void *quantized, float *scales)
{
    ft_error err;
    int32_t start[2];
    ft_batch batch = single_batch(rows, start);
    ft_limits limits = { .tokens = rows, .sequences = 1, .threads = threads };
    ft_weight on_device = *weight;
    ft_plan plan = { .weight = &on_device, .nweight = 1 };
    ft_value value = { .name = "x", .cols = (int32_t) weight->cols, .keep = true };
    int input = ft_plan_add_value(&plan, &value);
    value.dtype = faked ? FT_F32 : FT_I8;
    value.dynamic = true;
    int middle = ft_plan_add_value(&plan, &value);
    value = (ft_value){ .name = "y", .cols = (int32_t) weight->rows, .keep = true };
    int output = ft_plan_add_value(&plan, &value);
    ft_op quantize = ft_op_init(FT_OP_QUANTIZE), linear = ft_op_init(FT_OP_LINEAR);
    quantize.in[0] = (int16_t) input;
    quantize.quantized = linear.in[0] = (int16_t) middle;
    linear.out = (int16_t) output;
    linear.weight[0] = 0;
    if (ft_plan_add_op(&plan, &quantize) < 0 || ft_plan_add_op(&plan, &linear) < 0)
        bail_out("out of memory: operations");
    for (int i = 0; i < plan.nop; i++)
        must(ft_op_check(&plan, &plan.op[i], "two operations", &err), &err);
    must(on->backend->upload(on->device, NULL, &on_device, 1, &err), &err);
    must(ft_plan_layout(&plan, &limits, &err), &err);
    ft_exec *exec;
    must(on->backend->prepare(&exec, on->device, &plan, &limits, &err), &err);
    must(on->backend->write(exec, input, x, rows, &err), &err);
    must(on->backend->run(exec, &batch, NULL, &err), &err);
    must(on->backend->read(exec, middle, quantized, scales, rows, &err), &err);
    must(on->backend->read(exec, output, y, NULL, rows, &err), &err);
    on->backend->release(exec);
    ft_plan_fini(&plan);
}

/* Each result is the exact integer sum times the two scales: rounded three times in all. */
static void dynamic_linear(bench *on, size_t m, size_t n, size_t k)
{
    int8_t *w = random_int8(80, n * k), *quantized = must_have(m * k, 1);
    int8_t *col4 = must_have(oracle_col4(NULL, NULL, n, k, 0), 1);
    float *w_scale = random_floats(81, n, 0.01), *x = random_floats(82, m * k, 1.0);
    float *w_fake = fake_quantized(w, n * k),
          *fake_quantized_values = must_have(m * k, sizeof *fake_quantized_values);
    float *y = must_have(m * n, sizeof *y), *again = must_have(m * n, sizeof *again);
    float *scales = must_have(m, sizeof *scales);
    size_t wrong = 0;
    oracle_col4(col4, w, n, k, 3);
    ft_weight int8 = { .name = "w",
                       .rows = n,
                       .cols = k,
                       .dtype = FT_I8,
                       .layout = FT_COL4_4R2_8C,
                       .scale = w_scale,
                       .data = col4 };
    ft_weight fake = { .name = "w", .rows = n, .cols = k, .scale = w_scale, .data = w_fake };
    run_two(on, &int8, x, m, false, 1, y, quantized, scales);
    for (size_t row = 0; row < m; row++)
        for (size_t col = 0; col < n; col++) {
            double sum = 0.0;
            for (size_t i = 0; i < k; i++)
                sum += quantized[row * k + i] * w[col * k + i];
            double expected = sum * ((double) scales[row] * (double) w_scale[col]);
            wrong += is_far((double) y[row * n + col], expected, 3 * ROUNDING * fabs(expected));
        }
    is_int((long long) wrong, 0,
           "%s: linear %zu x %zu by %zu with row-scaled int8 input matches the exact sums",
           on->name, m, k, n);
    run_two(on, &fake, x, m, true, 2, again, fake_quantized_values, scales);
    ok(memcmp(y, again, m * n * sizeof *y) == 0,
       "%s: linear with row-scaled fake-quantized input gives the bits of int8", on->name);
    wrong = 0;
    for (size_t row = 0; row < m; row++) {
        run_two(on, &int8, x + row * k, 1, false, 2, again, quantized, scales);
        wrong += memcmp(y + row * n, again, n * sizeof *y) != 0;
    }
    is_int((long long) wrong, 0,
           "%s: linear with row-scaled int8 input gives a row the same bits alone and in a batch",
           on->name);
    void *all[] = {
        w, quantized, col4, w_scale, x, w_fake, fake_quantized_values, y, again, scales
    };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

/* ---- Last tokens of slots ----------------------------------------------------------------- */

static void embed_chosen(bench *on)
{
    enum { WORDS = 50, COLS = 40 };
    static const int32_t last[SEQUENCES] = { 11, 49, 0, 7 };
    double *value;
    ft_weight table = random_weight(83, WORDS, COLS, FT_BF16, &value);
    int32_t ids[TOKENS];
    float *found = must_have(TOKENS * COLS, sizeof *found);
    size_t wrong = 0;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = i % 3 == 0 ? -1 - i / 3 % SEQUENCES : i % WORDS;
    oneop t;
    oneop_begin(&t, on, FT_OP_EMBED, &mixed_batch);
    oneop_in(&t, 0, FT_TOKENS, 1, FT_I32, 0.0f, ids);
    oneop_weight(&t, 0, table);
    oneop_state(&t, FT_STATE_LAST_TOKEN, FT_SLOTS, 1, FT_I32, last);
    oneop_out(&t, FT_TOKENS, COLS);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    for (size_t i = 0; i < TOKENS; i++) {
        size_t id = (size_t) (ids[i] < 0 ? last[-1 - ids[i]] : ids[i]);
        for (size_t k = 0; k < COLS; k++)
            wrong += (double) found[i * COLS + k] != value[id * COLS + k];
    }
    is_int((long long) wrong, 0, "%s: embed reads the last token of a slot for a negative id",
           on->name);
    free_weight(&table);
    free(value);
    free(found);
}

/* Scaled token embeddings plus positions that follow from n_past, without position ids. */
static void embed_places(bench *on)
{
    enum { WORDS = 50, COLS = 300, PLACES = 310, OFFSET = 2 };
    static const int32_t n_past[SEQUENCES] = { 0, 31, 7, 2 };
    const float scale = 11.3137f;
    double *word, *place, worst = 0.0;
    ft_weight words = random_weight(84, WORDS, COLS, FT_F16, &word);
    ft_weight places = random_weight(85, PLACES, COLS, FT_F32, &place);
    int32_t ids[TOKENS], seq_id[TOKENS];
    float *found = must_have(TOKENS * COLS, sizeof *found);
    ft_batch batch = mixed_batch;
    for (int32_t i = 0; i < SEQUENCES; i++)
        for (int32_t row = batch.start[i]; row < batch.start[i + 1]; row++)
            seq_id[row] = i;
    batch.seq_id = seq_id;
    batch.n_past = n_past;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = i * 7 % WORDS;
    oneop t;
    oneop_begin(&t, on, FT_OP_EMBED, &batch);
    t.limits = (ft_limits){ .context = FT_PAGE_TOKENS,
                            .pages = 1 }; /* only decoders have implicit positions */
    t.op.attr.embed_scale = scale;
    t.op.attr.position_offset = OFFSET;
    oneop_in(&t, 0, FT_TOKENS, 1, FT_I32, 0.0f, ids);
    oneop_weight(&t, 0, words);
    oneop_weight(&t, 1, places);
    oneop_out(&t, FT_TOKENS, COLS);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    for (int32_t i = 0; i < TOKENS; i++) {
        size_t at = (size_t) (OFFSET + n_past[seq_id[i]] + i - batch.start[seq_id[i]]);
        for (size_t k = 0; k < COLS; k++) {
            double a = (double) scale * word[(size_t) ids[i] * COLS + k], b = place[at * COLS + k];
            /* A product and a sum round. */
            double bound = (2 * fabs(a) + fabs(b)) * ROUNDING;
            double error = fabs((double) found[(size_t) i * COLS + k] - (a + b)) / bound;
            worst = error <= worst ? worst : error >= 0.0 ? error : (double) INFINITY;
        }
    }
    near(worst, 0.0, 1.0,
         "%s: embed adds scaled token embeddings and the positions of their sequences", on->name);
    free_weight(&words);
    free_weight(&places);
    free(word);
    free(place);
    free(found);
}

void test_decoder_rows(bench *on)
{
    static const norm_case cases[] = {
        { FT_F32, FT_BOOL, FT_BOOL, FT_F32, HIDDEN }, { FT_F32, FT_F32, FT_F32, FT_F32, 1000 },
        { FT_F16, FT_F32, FT_F32, FT_F16, 257 },      { FT_BF16, FT_BF16, FT_BF16, FT_BF16, 33 },
        { FT_F32, FT_F16, FT_BOOL, FT_F32, 7 },       { FT_F32, FT_F32, FT_F16, FT_F32, 64 },
    };
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        norm_of_sum(on, &cases[i], FT_NORM_RMS);
        norm_of_sum(on, &cases[i], FT_NORM_LAYER);
    }
    dynamic_quantize(on, FT_F32);
    dynamic_quantize(on, FT_F16);
    dynamic_linear(on, 37, 70, 96);
    dynamic_linear(on, 9, 33, 1100);
    embed_chosen(on);
    embed_places(on);
}
