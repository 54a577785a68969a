/*
 * ops-smoothing.c - NORM and QUANTIZE multiply the columns of a row before they quantize it.
 *
 * The expected values need no oracle: the float result that NORM stores, or the input of QUANTIZE,
 * times the smoothing, quantized as kernels/quant.h defines it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>

typedef struct smoothing_case {
    ft_op_kind kind;
    ft_norm_kind norm;
    ft_dtype x, quantized;
    bool per_token;
    size_t cols;
} smoothing_case;

/* Operands and results of one case. */
typedef struct rows_of_case {
    void *x, *out, *quantized;
    float *weight, *bias, *smoothing, *scales;
} rows_of_case;

static void allocate(rows_of_case *r, const smoothing_case *c)
{
    size_t n = TOKENS * c->cols;
    r->x = random_numbers(80, n, c->x);
    r->weight = random_floats(81, c->cols, 1.0);
    r->bias = random_floats(82, c->cols, 1.0);
    r->smoothing = random_floats(83, c->cols, 2.0);
    for (size_t i = 0; i < c->cols; i++)
        r->smoothing[i] = fabsf(r->smoothing[i]) + 0.01f;
    r->out = must_have(n, sizeof(float));
    r->quantized = must_have(n, sizeof(float));
    r->scales = must_have(TOKENS, sizeof(float));
}

static void release(rows_of_case *r)
{
    void *all[] = { r->x, r->out, r->quantized, r->weight, r->bias, r->smoothing, r->scales };
    for (size_t i = 0; i < FT_COUNT(all); i++)
        free(all[i]);
}

static ft_weight vector(const float *data, size_t cols)
{
    return (ft_weight){ .rows = 1, .cols = cols, .data = data };
}

static const float static_scale = 3.0f / 127.0f;

static void run(bench *on, const smoothing_case *c, rows_of_case *r)
{
    int32_t cols = (int32_t) c->cols;
    oneop t;
    oneop_begin(&t, on, c->kind, &mixed_batch);
    oneop_in(&t, 0, FT_TOKENS, cols, c->x, 0.0f, r->x);
    if (c->kind == FT_OP_NORM) {
        t.op.attr.norm = c->norm;
        t.op.attr.eps = 1e-5f;
        oneop_weight(&t, 0, vector(r->weight, c->cols));
        if (c->norm == FT_NORM_LAYER)
            oneop_weight(&t, 1, vector(r->bias, c->cols));
        oneop_out_as(&t, FT_TOKENS, cols, c->x);
    }
    oneop_weight(&t, FT_WEIGHT_SMOOTHING, vector(r->smoothing, c->cols));
    if (c->per_token)
        oneop_dynamic_quantized(&t, FT_TOKENS, cols, c->quantized);
    else
        oneop_quantized(&t, FT_TOKENS, cols, c->quantized, static_scale);
    t.scales = c->per_token ? r->scales : NULL;
    oneop_run(&t, c->kind == FT_OP_NORM ? r->out : NULL, r->quantized);
    oneop_end(&t);
}

/* The number of values of a row that are not the smoothed, quantized values of `from`. */
static size_t wrong_in_row(const smoothing_case *c, const rows_of_case *r, const void *from,
                           size_t row)
{
    size_t wrong = 0, first = row * c->cols;
    float amax = 0.0f;
    for (size_t i = 0; i < c->cols; i++)
        amax = fmaxf(amax, fabsf((float) number_of(from, c->x, first + i) * r->smoothing[i]));
    float scale = c->per_token ? ft_scale_from_amax(amax) : static_scale;
    wrong += c->per_token && r->scales[row] != scale;
    for (size_t i = 0; i < c->cols; i++) {
        float value = (float) number_of(from, c->x, first + i) * r->smoothing[i];
        wrong += number_of(r->quantized, c->quantized, first + i) !=
                 (double) ft_quantize_to_float(value, ft_inverse_scale(scale));
    }
    return wrong;
}

static void smoothing_test(bench *on, const smoothing_case *c)
{
    rows_of_case r;
    allocate(&r, c);
    run(on, c, &r);
    size_t wrong = 0;
    for (size_t row = 0; row < TOKENS; row++)
        wrong += wrong_in_row(c, &r, c->kind == FT_OP_NORM ? r.out : r.x, row);
    is_int((long long) wrong, 0, "%s: %s%s of %s rows of %zu columns smooths them to %s, %s",
           on->name, c->kind == FT_OP_NORM && c->norm == FT_NORM_RMS ? "rms " : "",
           ft_op_name(c->kind), ft_dtype_name(c->x), c->cols, ft_dtype_name(c->quantized),
           c->per_token ? "with a scale per row" : "with one scale");
    release(&r);
}

/* Widths of the GPU's kernels: registers of a warp, of a block, in chunks, and no multiple of 8. */
void test_smoothing(bench *on)
{
    static const size_t widths[] = { 24, 45, 384, 768, 1000, 1031, 2304 };
    static const ft_dtype dtypes[] = { FT_F32, FT_F16 };
    for (size_t i = 0; i < FT_COUNT(widths) * 8; i++) {
        smoothing_case c = { .kind = FT_OP_NORM,
                             .x = dtypes[i % 2],
                             .quantized = i / 2 % 2 ? FT_F32 : FT_I8,
                             .per_token = i / 4 % 2,
                             .cols = widths[i / 8] };
        smoothing_test(on, &c);
        c.norm = FT_NORM_RMS;
        smoothing_test(on, &c);
        c.kind = FT_OP_QUANTIZE;
        smoothing_test(on, &c);
    }
}
