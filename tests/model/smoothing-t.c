/*
 * smoothing-t.c - calibration points whose columns are smoothed before they are quantized.
 *
 * A tiny BERT with an outlier channel in its norms is opened as int8 with scales per token and with
 * static ones, with and without smoothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/session.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/tiny.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 8, TOKENS = 9, OUTLIER = 3 };

static calibrated files;
static float factor[HIDDEN];
static ft_error err;

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* Makes a column of every norm's result thirty times larger than the others. */
static void add_outliers(tiny *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (strstr(t->name[i], "LayerNorm.") != NULL)
            ((float *) t->tensor[i].tensor.data)[OUTLIER] *= 30.0f;
}

/* Static scales: one amax for the smoothed points, one for all others; amax 0: scales per token. */
static ft_amax_table *ranges(float amax, const ft_smoothing *smoothing, size_t count)
{
    ft_model *model = calibrated_open(files.real, NULL);
    ft_amax_table *table = amax > 0.0f ? ft_amax_table_new() : NULL;
    for (int i = 0; i < model->graph.nvalue && table != NULL; i++) {
        ft_amax_entry entry = { .name = model->graph.value[i].name, .amax = 4.0f, .method = "max" };
        for (size_t k = 0; k < count; k++)
            if (strcmp(smoothing[k].point, entry.name) == 0)
                entry.amax = amax;
        if (model->graph.value[i].point)
            must(ft_amax_table_add(table, &entry, &err));
    }
    ft_model_close(model);
    return table;
}

static ft_status open_model(ft_model **out, const ft_quant_config *quant, bool no_fuse)
{
    return ft_model_open_with_config(out, files.real, &(ft_model_options){ .no_fuse = no_fuse },
                                     quant, &err);
}

/* A result [TOKENS, HIDDEN]; a value of the plan if it is not an output. */
static void run_model(float *out, ft_model *model, const char *name)
{
    int32_t ids[TOKENS];
    const char *const keep[] = { "embed.norm", NULL };
    ft_session *session;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = i * 7 % 20;
    must(ft_session_open(&session, model, &(ft_session_options){ .keep = keep }, &err));
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { 1, TOKENS }, .data = ids };
    must(ft_session_set(session, "input_ids", &input, &err));
    must(ft_session_run(session, &err));
    ft_tensor result = { .data = out };
    must(ft_session_get(session, name, &result, &err));
    ft_session_close(session);
}

static void run_quantized(float *out, const ft_quant_config *quant, bool no_fuse, const char *name)
{
    ft_model *model;
    must(open_model(&model, quant, no_fuse));
    run_model(out, model, name);
    ft_model_close(model);
}

/* Relative RMS distance. */
static double distance(const float *a, const float *b)
{
    double noise = 0.0, signal = 0.0;
    for (int i = 0; i < TOKENS * HIDDEN; i++) {
        noise += ((double) a[i] - (double) b[i]) * ((double) a[i] - (double) b[i]);
        signal += (double) a[i] * (double) a[i];
    }
    return sqrt(noise / signal);
}

static void test_plans(const ft_smoothing *smoothing, size_t count, float amax, float smoothed_amax,
                       const char *scales)
{
    static float real[TOKENS * HIDDEN], plain[TOKENS * HIDDEN], smooth[4][TOKENS * HIDDEN];
    const char *output = "last_hidden_state";
    ft_amax_table *table = ranges(amax, smoothing, count),
                  *smoothed = ranges(smoothed_amax, smoothing, count);
    ft_quant_config quant = { .mode = FT_MODE_FLOAT };
    run_quantized(real, &quant, false, output);
    quant = (ft_quant_config){ .mode = FT_MODE_INT8, .dynamic = table == NULL, .amax = table };
    run_quantized(plain, &quant, false, output);
    quant.smoothing = smoothing;
    quant.n_smoothing = count;
    quant.amax = smoothed;
    for (int i = 0; i < 4; i++) {
        quant.mode = i / 2 ? FT_MODE_FAKE_QUANTIZE : FT_MODE_INT8;
        run_quantized(smooth[i], &quant, i % 2, output);
    }
    if (table == NULL)
        ok(distance(real, smooth[0]) < 0.7 * distance(real, plain),
           "%s: smoothing the outlier channels takes a third or more off the error", scales);
    ok(memcmp(smooth[0], smooth[1], sizeof smooth[0]) == 0,
       "%s: fused and unfused smoothed plans give the same bytes", scales);
    ok(memcmp(smooth[0], smooth[2], sizeof smooth[0]) == 0 &&
           memcmp(smooth[0], smooth[3], sizeof smooth[0]) == 0,
       "%s: fake-quantized and int8 smoothed plans give the same bytes", scales);
    ft_amax_table_free(table);
    ft_amax_table_free(smoothed);
}

static void refused(const ft_smoothing *smoothing, bool int8_residual, const char *text,
                    const char *what)
{
    ft_model *model;
    ft_amax_table *table = ranges(4.0f, NULL, 0);
    ft_quant_config quant = { .mode = FT_MODE_INT8,
                              .int8_residual = int8_residual,
                              .amax = table,
                              .smoothing = smoothing,
                              .n_smoothing = 1 };
    ft_status status = open_model(&model, &quant, false);
    ok(status != FT_OK && strstr(err.text, text) != NULL, "%s is refused: %s", what, text);
    ft_model_close(status == FT_OK ? model : NULL);
    ft_amax_table_free(table);
}

/* Values that are kept are read with their smoothing undone. */
static void test_reading(const ft_smoothing *smoothing, size_t count)
{
    static float whole[TOKENS * HIDDEN], smoothed[TOKENS * HIDDEN];
    ft_quant_config quant = { .mode = FT_MODE_INT8, .dynamic = true };
    run_quantized(whole, &quant, false, "embed.norm");
    quant.smoothing = smoothing;
    quant.n_smoothing = count;
    run_quantized(smoothed, &quant, false, "embed.norm");
    ok(distance(whole, smoothed) < 0.03 && distance(whole, smoothed) > 0.0,
       "a smoothed value that is kept reads as the value before smoothing");
}

int main(void)
{
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    add_outliers(&t);
    calibrated_make(&files, &t);
    for (int i = 0; i < HIDDEN; i++)
        factor[i] = i == OUTLIER ? 16.0f : 1.0f;
    const ft_smoothing smoothing[] = { { "embed.norm", HIDDEN, factor },
                                       { "layer.0.attn.norm", HIDDEN, factor },
                                       { "layer.0.ffn.norm", HIDDEN, factor },
                                       { "layer.1.attn.norm", HIDDEN, factor } };
    test_plans(smoothing, FT_COUNT(smoothing), 0.0f, 0.0f, "scales per token");
    test_plans(smoothing, FT_COUNT(smoothing), 64.0f, 4.0f, "static scales");
    test_reading(smoothing, FT_COUNT(smoothing));

    float bad[HIDDEN];
    memcpy(bad, factor, sizeof bad);
    bad[7] = 0.0f;
    refused(&(ft_smoothing){ "embed.norm", HIDDEN, bad }, false, "a factor out of range",
            "a factor of 0");
    bad[7] = NAN;
    refused(&(ft_smoothing){ "embed.norm", HIDDEN, bad }, false, "a factor out of range",
            "a factor that is NaN");
    refused(&(ft_smoothing){ "embed.norm", HIDDEN - 1, factor }, false, "no calibration point",
            "a vector that is too short");
    refused(&(ft_smoothing){ "layer.7.ffn.norm", HIDDEN, factor }, false, "no calibration point",
            "a point that the model lacks");
    refused(&(ft_smoothing){ "layer.0.attn.q", HIDDEN, factor }, false, "int8 matrices alone read",
            "a point that attention reads");
    refused(&(ft_smoothing){ "embed.norm", HIDDEN, factor }, true, "int8 residual stream",
            "smoothing in an int8 residual stream");
    tiny_remove(&t);
    return done_testing();
}
