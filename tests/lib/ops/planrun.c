/*
 * planrun.c - runs one plan on one device, and compares the values of two runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/planrun.h"

#include "kernels/half.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/ops/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int32_t start[PLANRUN_SEQUENCES + 1] = { 0, 1, 8, 81, PLANRUN_TOKENS };
static int32_t inputs[FT_NUM_BATCH_INPUTS][PLANRUN_TOKENS];
static const ft_batch batch = { .tokens = PLANRUN_TOKENS,
                                .sequences = PLANRUN_SEQUENCES,
                                .longest = 100,
                                .start = start,
                                .input = { NULL, inputs[1], inputs[2], inputs[3] } };

void planrun_must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

static void draw_inputs(void)
{
    rng draw = { 60 };
    for (size_t row = 0; row < PLANRUN_TOKENS; row++)
        inputs[FT_BATCH_IDS][row] = (int32_t) rng_below(&draw, 50);
    for (size_t s = 0; s < PLANRUN_SEQUENCES; s++)
        for (int32_t row = start[s]; row < start[s + 1]; row++)
            inputs[FT_BATCH_POSITIONS][row] = row - start[s];
    for (size_t row = 0; row < PLANRUN_TOKENS; row++)
        inputs[FT_BATCH_TYPES][row] = (int32_t) rng_below(&draw, 2);
}

void planrun_start(planrun *r, const ft_backend *backend, ft_device *device, const ft_plan *graph,
                   const ft_lower_options *how, ft_counts *const *counts)
{
    ft_error err;
    r->backend = backend;
    r->plan = test_lower(graph, how);
    ft_limits limits = { .tokens = PLANRUN_TOKENS,
                         .sequences = PLANRUN_SEQUENCES,
                         .threads = counts == NULL ? 2 : 1 };
    for (int i = 0; i < r->plan.nvalue; i++)
        r->plan.value[i].keep = true;
    planrun_must(ft_plan_layout(&r->plan, &limits, &err), &err);
    planrun_must(backend->prepare(&r->exec, device, &r->plan, &limits, &err), &err);
    draw_inputs();
    planrun_must(backend->run(r->exec, &batch, counts, &err), &err);
    if (counts != NULL)
        planrun_must(backend->collect(r->exec, counts, &err), &err);
}

void planrun_again(planrun *r)
{
    ft_error err;
    planrun_must(r->backend->run(r->exec, &batch, NULL, &err), &err);
}

void planrun_end(planrun *r)
{
    r->backend->release(r->exec);
    ft_plan_fini(&r->plan);
}

static float real_number(const void *raw, ft_dtype dtype, size_t i)
{
    switch (dtype) {
    case FT_I8:
        return (float) ((const int8_t *) raw)[i];
    case FT_F16:
        return ft_float_from_f16(((const uint16_t *) raw)[i]);
    case FT_BF16:
        return ft_float_from_bf16(((const uint16_t *) raw)[i]);
    default:
        return ((const float *) raw)[i];
    }
}

float *planrun_values(const planrun *r, const char *name, size_t *count)
{
    int index = ft_plan_find(&r->plan, name);
    *count = 0;
    if (index < 0 || ft_plan_producer(&r->plan, index) < 0)
        return NULL;
    const ft_value *v = &r->plan.value[index];
    size_t rows = v->rows == FT_TOKENS ? PLANRUN_TOKENS : PLANRUN_SEQUENCES;
    ft_error err;
    *count = rows * (size_t) v->cols;
    void *raw = must_have(*count, sizeof(float));
    float *real = must_have(*count, sizeof *real);
    planrun_must(r->backend->read(r->exec, index, raw, NULL, rows, &err), &err);
    for (size_t i = 0; i < *count; i++)
        real[i] = real_number(raw, v->dtype, i) * (v->scale > 0.0f ? v->scale : 1.0f);
    free(raw);
    return real;
}

/* By value: a fake-quantized value may be -0, which int8 does not have. */
static bool same_numbers(const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] == y[i]))
            return false;
    return true;
}

/* Whether this value depends on a float GEMM. */
static bool has_float_gemm(const ft_plan *plan, int value)
{
    int maker = ft_plan_producer(plan, value);
    if (maker < 0)
        return false;
    const ft_op *op = &plan->op[maker];
    bool found = op->kind == FT_OP_LINEAR && plan->weight[op->weight[0]].scale == NULL;
    for (int i = 0; i < FT_MAX_IN && !found; i++)
        found = op->in[i] >= 0 && has_float_gemm(plan, op->in[i]);
    return found;
}

/* Compares all values that both runs have computed; returns how many differ. */
static int differences(const planrun *a, const planrun *b, bool across, int *compared)
{
    int differ = 0;
    *compared = 0;
    for (int i = 0; i < a->plan.nvalue; i++) {
        size_t na, nb;
        float *x = planrun_values(a, a->plan.value[i].name, &na);
        float *y = planrun_values(b, a->plan.value[i].name, &nb);
        if (na > 0 && nb > 0 && !(across && has_float_gemm(&a->plan, i))) {
            bool same = na == nb && same_numbers(x, y, na);
            if (!same && differ++ == 0)
                diag("the first value that differs is %s", a->plan.value[i].name);
            ++*compared;
        }
        free(x);
        free(y);
    }
    return differ;
}

static void agree(const planrun *a, const planrun *b, bool across, int least, const char *sentence)
{
    int compared, differ = differences(a, b, across, &compared);
    ok(differ == 0 && compared >= least, "%s", sentence);
    if (differ > 0 || compared < least)
        diag("%d of %d values differ", differ, compared);
}

void planrun_agree(const planrun *a, const planrun *b, int least, const char *sentence)
{
    agree(a, b, false, least, sentence);
}

void planrun_agree_across(const planrun *a, const planrun *b, int least, const char *sentence)
{
    agree(a, b, true, least, sentence);
}

double planrun_distance(const planrun *a, const planrun *b, const char *name)
{
    size_t na, nb;
    float *x = planrun_values(a, name, &na), *y = planrun_values(b, name, &nb);
    double error = 0.0, size = 0.0;
    for (size_t i = 0; i < na && na == nb; i++) {
        error += ((double) x[i] - (double) y[i]) * ((double) x[i] - (double) y[i]);
        size += (double) x[i] * (double) x[i];
    }
    free(x);
    free(y);
    return na > 0 && na == nb ? sqrt(error / size) : (double) INFINITY;
}
