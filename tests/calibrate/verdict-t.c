/*
 * verdict-t.c - when calibration warns, what the warning says, and which points it names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "calibrate/report/verdict.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Synthetic reports -------------------------------------------------------------------- */

enum { POINTS = 5 };

static ft_point_report point[POINTS];

static void set_point(int i, const char *name, const char *matrix, double sqnr_db)
{
    point[i] = (ft_point_report){ .is_quantized = true, .chosen.distortion.sqnr_db = sqnr_db };
    snprintf(point[i].name, sizeof point[i].name, "%s", name);
    snprintf(point[i].matrix, sizeof point[i].matrix, "%s", matrix);
}

static ft_report report_of(double cosine, double agreement)
{
    set_point(0, "layer.0.input", "layer.0.q.weight", 31.0);
    set_point(1, "layer.0.attn.probs", "", 1.0);
    set_point(2, "layer.0.attn.norm", "layer.0.up.weight", 12.5);
    set_point(3, "layer.0.act", "layer.0.down.weight", 9.0);
    set_point(4, "layer.0.norm", "layer.1.q.weight", 20.0);
    point[1].is_quantized = false;
    return (ft_report){ .point = point,
                        .points = POINTS,
                        .samples = 300,
                        .method = FT_METHOD_PERCENTILE,
                        .evaluation = { .output = "embedding",
                                        .samples = 64,
                                        .cosine = cosine,
                                        .agreement = agreement } };
}

static void is_silent(const ft_report *report, const char *what)
{
    char *text = ft_report_warning(report);
    is_str(text, "", "ft_report_warning() is silent about %s", what);
    free(text);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *c = text; (c = strstr(c, word)) != NULL; c++)
        count++;
    return count;
}

static size_t longest_line(const char *text)
{
    size_t most = 0;
    for (; *text != '\0'; text += strcspn(text, "\n") + 1)
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return most;
}

static void test_bounds(void)
{
    ft_report r = report_of(0.985, (double) NAN);
    is_silent(&r, "a mean cosine similarity of 0.985");
    r = report_of(0.9999, 0.98);
    is_silent(&r, "agreement on the class in 98 of 100 samples");
    point[3].chosen.status = FT_AMAX_RAISED;
    is_silent(&r, "a raised range when the model output is close");
}

static void test_far(void)
{
    ft_report r = report_of(0.911, (double) NAN);
    char *text = ft_report_warning(&r);
    is_str(text,
           "warning: the quantized model is far from the float model: embedding has a mean "
           "cosine of\n"
           "  0.9110 on 64 calibration samples; expected 0.98 or more; new data may be worse\n"
           "  try -m auto; --scheme w8a8-block\n"
           "  or --exclude REGEX, which keeps matrices float; lowest SQNR: inputs of\n"
           "    layer.0.down.weight (9.0 dB); layer.0.up.weight (12.5 dB); layer.1.q.weight (20.0 "
           "dB)\n",
           "a mean cosine of 0.911 gives a warning with the distance, samples and remedies");
    ok(text != NULL && strstr(text, "attn.probs") == NULL,
       "the warning omits points that the runtime does not quantize");
    ok(text != NULL && longest_line(text) <= 100,
       "every line of the warning has at most 100 columns");
    free(text);
}

static void test_advice(void)
{
    ft_report r = report_of(0.9, (double) NAN);
    r.method = FT_METHOD_AUTO;
    r.samples = 8;
    r.is_decoder = true;
    r.held_out = true;
    char *text = ft_report_warning(&r);
    has(text, "on 64 held-out samples; expected 0.98 or more\n",
        "the warning calls held-out samples held-out");
    has(text, "try -m percentile; more samples than 8; --scheme w8a8-dynamic; --scheme w8a8-block",
        "the warning suggests percentile after auto, more samples, and dynamic ranges for "
        "decoders");
    free(text);
    r.int8_residual = true;
    text = ft_report_warning(&r);
    has(text, "--residual float", "the warning suggests a float residual stream for an int8 one");
    free(text);
    r = report_of(0.99, 0.5);
    text = ft_report_warning(&r);
    has(text, "embedding has the same class\n  in 50.0 %",
        "the warning reports how often the class differs");
    ok(count_of(text, "warning") == 1, "a differing class gives one warning");
    free(text);
    r = report_of((double) NAN, (double) NAN);
    text = ft_report_warning(&r);
    has(text, "embedding contains NaN or infinity",
        "the warning reports an output with NaN or infinity");
    free(text);
}

static void test_blocks(void)
{
    ft_weight_report weight[2] = { { .name = "a.weight", .scheme = FT_SCHEME_W4A16 },
                                   { .name = "b.weight", .scheme = FT_SCHEME_FLOAT } };
    weight[0].sqnr.per_channel = 19.7;
    ft_report r = report_of(0.95, (double) NAN);
    r.points = 0;
    r.weight = weight;
    r.weights = 2;
    r.scheme = FT_SCHEME_W4A16;
    char *text = ft_report_warning(&r);
    has(text, "try --scheme w8a16; --asym; --clip imatrix --round gptq, with samples",
        "the warning about 4-bit weights suggests 8 bits and better quantization methods");
    has(text, "    a.weight (19.7 dB)\n",
        "the warning names the quantized matrix with the lowest SQNR");
    free(text);
}

/* Without an evaluation only the points can be judged. */
static void test_points(void)
{
    ft_report r = report_of(0.0, 0.0);
    r.evaluation.samples = 0;
    is_silent(&r, "a calibration without evaluation");
    for (int i = 0; i < POINTS; i++)
        point[i].chosen.status = FT_AMAX_ZERO;
    char *text = ft_report_warning(&r);
    is_str(text,
           "warning: no evaluation samples; check these ranges:\n"
           "  layer.0.input (all zero), layer.0.attn.norm (all zero), layer.0.act (all zero) and 1 "
           "more\n",
           "the warning without evaluation names at most three points whose range is unknown");
    free(text);
}

/* ---- Points of a model -------------------------------------------------------------------- */

/* The points that the report calls quantized are those that the int8 plan stores as int8. */
static void test_read(const calibrated *made, const ft_recipe *recipe, const char *what)
{
    char path[CALIBRATED_PATH + 8];
    ft_report report;
    ft_error err;
    int wrong = 0, read = 0, unnamed = 0;
    snprintf(path, sizeof path, "%s.again", made->quantized);
    if (ft_calibrate(&(ft_calibration_options){ .input = made->real,
                                                .output = path,
                                                .data = made->samples,
                                                .method = FT_METHOD_AUTO,
                                                .recipe = recipe,
                                                .force = true,
                                                .threads = 1 },
                     NULL, &report, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_model *model = calibrated_open(path, NULL);
    for (size_t i = 0; i < report.points; i++) {
        const ft_point_report *p = &report.point[i];
        int value = ft_plan_find(&model->plan, p->name);
        bool quantized = value >= 0 && model->plan.value[value].dtype == FT_I8;
        wrong += quantized != p->is_quantized;
        read += p->is_quantized;
        unnamed += p->matrix[0] != '\0' && !p->is_quantized;
    }
    is_int(wrong, 0,
           "%s: the report marks the points as quantized that the int8 plan stores as int8", what);
    ok(read > 0 && (size_t) read < report.points,
       "%s: the report marks some points as quantized and some as not", what);
    is_int(unnamed, 0, "%s: the report names a matrix only for quantized points", what);
    ft_model_close(model);
    ft_report_fini(&report);
}

int main(void)
{
    tiny t;
    calibrated made;
    ft_error err;
    ft_recipe recipe = { .scheme = FT_SCHEME_W8A8 };
    test_bounds();
    test_far();
    test_advice();
    test_blocks();
    test_points();
    tiny_make_classifier(&t);
    calibrated_make(&made, &t);
    test_read(&made, &recipe, "w8a8 for all linears");
    if (ft_recipe_add(&recipe, "layer\\.0\\.ffn", FT_SCHEME_FLOAT, &err) != FT_OK)
        bail_out("%s", err.text);
    test_read(&made, &recipe, "w8a8 with some float linears");
    ft_recipe_fini(&recipe);
    tiny_remove(&t);
    return done_testing();
}
