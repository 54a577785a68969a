/*
 * modes-t.c - the plans of one model for every mode give bit-identical values where they must.
 *
 * A small BERT of unaligned sizes runs as float, observe, fake-quantized and int8 plans, fused and
 * unfused, on a batch of mixed lengths.  Scales come from the counters of the observe plan, so the
 * test covers a whole calibration without files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/devices.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/models/bert.h"
#include "tests/lib/ops/observed.h"
#include "tests/lib/ops/planrun.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_backend *backend;
static ft_device *device;

/* ---- Calibration -------------------------------------------------------------------------- */

/* The scale of every calibration point, in the order of the graph's values. */
static float *observe(const ft_plan *graph)
{
    observed o;
    observed_start(&o, backend, device, graph);
    float *scale = observed_scales(&o);
    int wrong = 0;
    for (int i = 0; i < graph->nvalue; i++) {
        size_t count;
        if (o.counts[i] == NULL)
            continue;
        float *real = planrun_values(&o.run, graph->value[i].name, &count), amax = 0.0f;
        for (size_t k = 0; k < count; k++)
            amax = fmaxf(amax, fabsf(real[k]));
        if (count > 0)
            wrong += ft_counts_total(o.counts[i]) != count || scale[i] != amax / 127.0f;
        free(real);
    }
    is_int(wrong, 0, "every calibration point counts each of its values once");
    observed_end(&o);
    return scale;
}

/* ---- The plans ---------------------------------------------------------------------------- */

static void test_float(const ft_plan *graph, const ft_plan *observing)
{
    planrun fused, unfused, seen;
    planrun_start(&fused, backend, device, graph,
                  &(ft_lower_options){ .mode = FT_MODE_FLOAT, .fuse = true }, NULL);
    planrun_start(&unfused, backend, device, graph, &(ft_lower_options){ .mode = FT_MODE_FLOAT },
                  NULL);
    planrun_start(&seen, backend, device, observing,
                  &(ft_lower_options){ .mode = FT_MODE_OBSERVE, .fuse = true }, NULL);
    planrun_agree(&fused, &unfused, 25, "float: fused and unfused plans give equal values");
    planrun_agree(&fused, &seen, 25, "float: observing does not change the values");
    planrun_end(&fused);
    planrun_end(&unfused);
    planrun_end(&seen);
}

/* `dtype` is the dtype of float values in the quantized plans; `scales` says which scales. */
static void test_quantized(const test_bert *model, const float *scale, const char *scales,
                           bool int8_residual, ft_dtype dtype, const planrun *real)
{
    planrun f[2][2]; /* [int8][fused] */
    char residual[64], sentence[128];
    snprintf(residual, sizeof residual, "%s scales, %s residual in %s", scales,
             int8_residual ? "int8" : "float", ft_dtype_name(dtype));
    for (int int8 = 0; int8 < 2; int8++)
        for (int fused = 0; fused < 2; fused++) {
            ft_mode mode = int8 ? FT_MODE_INT8 : FT_MODE_FAKE_QUANTIZE;
            ft_lower_options how = { .mode = mode,
                                     .fuse = fused,
                                     .int8_residual = int8_residual,
                                     .scale = scale,
                                     .float_dtype = dtype };
            planrun_start(&f[int8][fused], backend, device, &model[mode].graph, &how, NULL);
        }
    snprintf(sentence, sizeof sentence, "%s: fused fake-quantized and int8 plans give equal values",
             residual);
    planrun_agree(&f[0][1], &f[1][1], 25, sentence);
    snprintf(sentence, sizeof sentence,
             "%s: unfused fake-quantized and int8 plans give equal values", residual);
    planrun_agree(&f[0][0], &f[1][0], 25, sentence);
    snprintf(sentence, sizeof sentence, "%s: fused and unfused int8 plans give equal values",
             residual);
    planrun_agree(&f[1][0], &f[1][1], 20, sentence);
    /* Two layers of int8: a wrong scale or a missing bias gives several times this difference. */
    near(planrun_distance(real, &f[1][1], "classifier"), 0.0, 0.1,
         "%s: the logits are close to those of the float model", residual);
    for (int i = 0; i < 4; i++)
        planrun_end(&f[i / 2][i % 2]);
}

/* Every point of a kind gets a scale per row: those whose name contains one of these words. */
static float *without_static_scales(const ft_plan *graph, const float *scale,
                                    const char *const *words)
{
    float *mixed = ft_calloc((size_t) graph->nvalue, sizeof *mixed);
    for (int i = 0; i < graph->nvalue && mixed != NULL; i++) {
        mixed[i] = scale[i];
        for (int k = 0; words[k] != NULL; k++)
            if (strstr(graph->value[i].name, words[k]) != NULL)
                mixed[i] = 0.0f;
    }
    return mixed;
}

/* Scales per row of the inputs of linears, of one operand of attention, and of all points. */
static void test_row_scales(const test_bert *model, const float *scale, const planrun *real)
{
    static const struct {
        const char *name;
        const char *words[4];
    } cases[] = { { "row and static", { "norm", "act", NULL } },
                  { "row and static, one for keys,", { "attn.k", "context", NULL } },
                  { "row", { "", NULL } } };
    const ft_plan *graph = &model[FT_MODE_FLOAT].graph;
    for (size_t i = 0; i < FT_COUNT(cases) * 2; i++) {
        float *mixed = without_static_scales(graph, scale, cases[i / 2].words);
        test_quantized(model, mixed, cases[i / 2].name, false, i % 2 ? FT_F16 : FT_F32, real);
        free(mixed);
    }
}

int main(void)
{
    ft_error err;
    planrun_must(ft_device_open(&backend, &device, "cpu", &err), &err);
    ft_config config = test_bert_config(52, 2, 75);
    test_bert model[FT_MODE_INT8 + 1];
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_make(&model[mode], &config, (ft_mode) mode, 1);
    const ft_plan *graph = &model[FT_MODE_FLOAT].graph;
    float *scale = observe(&model[FT_MODE_OBSERVE].graph);
    test_float(graph, &model[FT_MODE_OBSERVE].graph);
    planrun real;
    planrun_start(&real, backend, device, graph,
                  &(ft_lower_options){ .mode = FT_MODE_FLOAT, .fuse = true }, NULL);
    for (int i = 0; i < 4; i++)
        test_quantized(model, scale, "static", i % 2, i / 2 ? FT_F16 : FT_F32, &real);
    test_row_scales(model, scale, &real);
    planrun_end(&real);
    free(scale);
    for (int mode = 0; mode <= FT_MODE_INT8; mode++)
        test_bert_free(&model[mode]);
    backend->close(device);
    return done_testing();
}
