/*
 * modes-t.c - one model, every plan: what must agree to the bit does.
 *
 * A small BERT of odd sizes runs as float, observed, faked int8 and int8 plans, fused and not, on
 * a batch of mixed lengths.  Scales come from what the observed plan has counted, so the whole way
 * of a calibration is walked without any file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "runtime/devices.h"
#include "runtime/mem.h"
#include "runtime/plan.h"
#include "runtime/tensor.h"
#include "tests/lib/bert.h"
#include "tests/lib/oneop.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 181, SEQUENCES = 4 };

static const int32_t start[SEQUENCES + 1] = { 0, 1, 8, 81, TOKENS };
static const ft_batch batch = {
    .tokens = TOKENS, .sequences = SEQUENCES, .longest = 100, .start = start
};

static const ft_backend *backend;
static ft_device *device;

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* ---- A run -------------------------------------------------------------------------------- */

/* A plan, all of whose values are kept, after a run.  Stays where it is: `exec` points into it. */
typedef struct finished {
    ft_plan plan;
    ft_exec *exec;
} finished;

static void write_inputs(const finished *f)
{
    static const char *const names[] = { "input_ids", "positions", "token_type_ids" };
    int32_t column[TOKENS];
    rng r = { 60 };
    ft_error err;
    for (int i = 0; i < 3; i++) {
        for (size_t s = 0; s < SEQUENCES; s++)
            for (int32_t row = start[s]; row < start[s + 1]; row++)
                column[row] = i == 1 ? row - start[s] : (int32_t) rng_below(&r, i == 0 ? 50 : 2);
        must(backend->write(f->exec, ft_plan_find(&f->plan, names[i]), column, TOKENS, &err), &err);
    }
}

/* With counts: one set a value of the graph, whose points the plan observes. */
static void run(finished *f, const ft_plan *graph, const ft_lowering *how, ft_counts *const *counts)
{
    ft_error err;
    f->plan = test_lower(graph, how);
    ft_limits limits = { TOKENS, SEQUENCES, counts == NULL ? 2 : 1 };
    for (int i = 0; i < f->plan.nvalue; i++)
        f->plan.value[i].keep = true;
    must(ft_plan_layout(&f->plan, TOKENS, SEQUENCES, &err), &err);
    must(backend->prepare(&f->exec, device, &f->plan, &limits, &err), &err);
    write_inputs(f);
    must(backend->run(f->exec, &batch, counts, &err), &err);
}

static void end(finished *f)
{
    backend->release(f->exec);
    ft_plan_fini(&f->plan);
}

/* A value as real numbers; *count receives how many, 0 for a value that this plan does not make. */
static float *values_of(const finished *f, const char *name, size_t *count)
{
    int index = ft_plan_find(&f->plan, name);
    *count = 0;
    if (index < 0 || ft_plan_producer(&f->plan, index) < 0)
        return NULL;
    const ft_value *v = &f->plan.value[index];
    size_t rows = v->rows == FT_TOKENS ? TOKENS : SEQUENCES;
    ft_error err;
    *count = rows * (size_t) v->cols;
    void *raw = must_have(*count, sizeof(float));
    float *real = must_have(*count, sizeof *real);
    must(backend->read(f->exec, index, raw, rows, &err), &err);
    for (size_t i = 0; i < *count; i++) {
        real[i] = v->dtype == FT_I8 ? (float) ((int8_t *) raw)[i] : ((float *) raw)[i];
        real[i] *= v->scale > 0.0f ? v->scale : 1.0f;
    }
    free(raw);
    return real;
}

/* By value: a faked code may be -0, which int8 does not have. */
static bool same_numbers(const float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] == y[i]))
            return false;
    return true;
}

/* Compare all values that both runs have made; returns how many values differ. */
static int differences(const finished *a, const finished *b, int *compared)
{
    int differ = 0;
    *compared = 0;
    for (int i = 0; i < a->plan.nvalue; i++) {
        size_t na, nb;
        float *x = values_of(a, a->plan.value[i].name, &na);
        float *y = values_of(b, a->plan.value[i].name, &nb);
        if (na > 0 && nb > 0) {
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

/* One check: equal numbers in every value that both have, at least `least` of them. */
static void agree(finished *a, finished *b, int least, const char *sentence)
{
    int compared, differ = differences(a, b, &compared);
    ok(differ == 0 && compared >= least, "%s", sentence);
    if (differ > 0 || compared < least)
        diag("%d of %d values differ", differ, compared);
}

/* ---- Calibration -------------------------------------------------------------------------- */

/* The largest magnitude of every point, as a scale; in the order of the graph's values. */
static float *observe(const ft_plan *graph)
{
    size_t n = (size_t) graph->nvalue;
    ft_counts **counts = must_have(n, sizeof *counts);
    float *scale = must_have(n, sizeof *scale);
    for (size_t i = 0; i < n; i++)
        if (graph->value[i].point) {
            counts[i] = must_have(1, sizeof **counts);
            if (!ft_counts_init(counts[i]))
                bail_out("no memory for counters");
        }
    finished f;
    run(&f, graph, &(ft_lowering){ .mode = FT_MODE_OBSERVE, .fuse = true }, counts);
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        if (counts[i] == NULL)
            continue;
        size_t count;
        float *real = values_of(&f, graph->value[i].name, &count), amax = 0.0f;
        for (size_t k = 0; k < count; k++)
            amax = fmaxf(amax, fabsf(real[k]));
        ft_counts_settle(counts[i]);
        scale[i] = ft_float_from_bits(counts[i]->tail[counts[i]->tail_used - 1]) / 127.0f;
        if (count > 0)
            wrong += ft_counts_total(counts[i]) != count || scale[i] != amax / 127.0f;
        free(real);
        ft_counts_fini(counts[i]);
        free(counts[i]);
    }
    is_int(wrong, 0, "every point has been counted, value by value");
    end(&f);
    free(counts);
    return scale;
}

/* ---- The plans ---------------------------------------------------------------------------- */

static double relative_distance(const finished *a, const finished *b, const char *name)
{
    size_t na, nb;
    float *x = values_of(a, name, &na), *y = values_of(b, name, &nb);
    double error = 0.0, size = 0.0;
    for (size_t i = 0; i < na && na == nb; i++) {
        error += ((double) x[i] - (double) y[i]) * ((double) x[i] - (double) y[i]);
        size += (double) x[i] * (double) x[i];
    }
    free(x);
    free(y);
    return na > 0 && na == nb ? sqrt(error / size) : (double) INFINITY;
}

static void test_float(const ft_plan *graph, const ft_plan *observed)
{
    finished fused, unfused, seen;
    run(&fused, graph, &(ft_lowering){ .mode = FT_MODE_FLOAT, .fuse = true }, NULL);
    run(&unfused, graph, &(ft_lowering){ .mode = FT_MODE_FLOAT }, NULL);
    run(&seen, observed, &(ft_lowering){ .mode = FT_MODE_OBSERVE, .fuse = true }, NULL);
    agree(&fused, &unfused, 25, "float: fused and unfused plans give equal numbers");
    agree(&fused, &seen, 25, "float: observing changes nothing");
    end(&fused);
    end(&unfused);
    end(&seen);
}

static void test_codes(const test_bert *model, const float *scale, bool int8_residual,
                       const finished *real)
{
    finished f[2][2]; /* [int8][fused] */
    const char *residual = int8_residual ? "int8 residual" : "float residual";
    char sentence[128];
    for (int int8 = 0; int8 < 2; int8++)
        for (int fused = 0; fused < 2; fused++) {
            ft_mode mode = int8 ? FT_MODE_INT8 : FT_MODE_FAKE;
            ft_lowering how = { mode, fused, int8_residual, scale };
            run(&f[int8][fused], &model[mode].graph, &how, NULL);
        }
    snprintf(sentence, sizeof sentence, "%s: faked and int8 plans give equal numbers", residual);
    agree(&f[0][1], &f[1][1], 25, sentence);
    snprintf(sentence, sizeof sentence, "%s: so do unfused ones", residual);
    agree(&f[0][0], &f[1][0], 25, sentence);
    snprintf(sentence, sizeof sentence, "%s: and fused and unfused int8 plans", residual);
    agree(&f[1][0], &f[1][1], 20, sentence);
    /* Two layers of 8 bits: a wrong scale or a lost bias would be several times as far. */
    near(relative_distance(real, &f[1][1], "classifier"), 0.0, 0.1,
         "%s: the logits are near the float model's", residual);
    for (int i = 0; i < 4; i++)
        end(&f[i / 2][i % 2]);
}

int main(void)
{
    ft_error err;
    must(ft_device_open(&backend, &device, "cpu", &err), &err);
    ft_config config = test_bert_config(52, 2, 75);
    test_bert model[FT_MODE_INT8 + 1];
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_make(&model[mode], &config, (ft_mode) mode, 1);
    const ft_plan *graph = &model[FT_MODE_FLOAT].graph;
    float *scale = observe(&model[FT_MODE_OBSERVE].graph);
    test_float(graph, &model[FT_MODE_OBSERVE].graph);
    finished real;
    run(&real, graph, &(ft_lowering){ .mode = FT_MODE_FLOAT, .fuse = true }, NULL);
    test_codes(model, scale, false, &real);
    test_codes(model, scale, true, &real);
    end(&real);
    free(scale);
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_free(&model[mode]);
    backend->close(device);
    return done_testing();
}
