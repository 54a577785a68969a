/*
 * schemes-t.c - from a recipe to a quantized model: every scheme, every kind of model.
 *
 * The outputs of a weight-only artifact are compared with those of a float model of its dequantized
 * weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "kernels/half.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/translator_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ft_error err;
static char quantized[128]; /* the path of the quantized artifact */

/* ---- Dequantized models ------------------------------------------------------------------- */

static float value_of(const ft_weight *w, size_t row, size_t col)
{
    int bits = ft_groupwise_bits(w->dtype);
    size_t at = ft_groupwise_scale_index(&w->groupwise, row, col, w->rows);
    return ft_float_from_f16(w->groupwise.scale[at]) *
           (float) ((int32_t) ft_panel_value(w->data, row, col, w->cols, bits) -
                    ft_groupwise_zero_point(&w->groupwise, at, bits));
}

static ft_weight as_floats(const ft_weight *w)
{
    ft_weight out = *w;
    float *data = ft_calloc_aligned(w->rows * w->cols * sizeof *data);
    for (size_t i = 0; i < w->rows * w->cols; i++)
        data[i] = value_of(w, i / w->cols, i % w->cols);
    out.dtype = FT_F32;
    out.layout = FT_ROW;
    out.groupwise = (ft_groupwise){ 0 };
    out.data = data;
    return out;
}

/* Runs the quantized and the dequantized model and compares their outputs. */
static void is_what_quantized_values_mean(const char *what, const model_input *input)
{
    ft_model *model = calibrated_open(quantized, NULL), *twin;
    size_t count = (size_t) (model->nweight - (model->positions != NULL)), n, m, blocks = 0;
    ft_weight *weight = ft_calloc(count, sizeof *weight);
    bool *made = ft_calloc(count, sizeof *made);
    for (size_t i = 0; i < count; i++) {
        made[i] = model->weight[i].groupwise.scale != NULL;
        weight[i] = made[i] ? as_floats(&model->weight[i]) : model->weight[i];
        blocks += made[i];
    }
    ft_model_parts parts = { "twin", model->family, &model->config, weight, count };
    if (ft_model_from_weights(&twin, &parts, NULL, &(ft_quant_config){ .mode = FT_MODE_FLOAT },
                              &err) != FT_OK)
        bail_out("%s", err.text);
    float *a = calibrated_result(model, input, "last_hidden_state", &n);
    float *b = calibrated_result(twin, input, "last_hidden_state", &m);
    double most = 0.0;
    for (size_t i = 0; i < n && n == m; i++)
        most = fmax(most, fabs((double) a[i] - (double) b[i]));
    ok(blocks > 0 && n == m, "%s: %zu matrices are group-wise quantized", what, blocks);
    /* 1e-3: x is rounded to 16 bits before it is multiplied with group-wise weights. */
    near(most, 0.0, 1e-3,
         "a group-wise quantized model computes the same as its dequantized model");
    free(a);
    free(b);
    ft_model_close(twin);
    for (size_t i = 0; i < count; i++)
        if (made[i])
            free((void *) (uintptr_t) weight[i].data);
    ft_model_close(model);
    free(weight);
    free(made);
}

/* ---- Recipes ------------------------------------------------------------------------------ */

/* A job "SCHEME RULE..." with groups of 32 columns, the last of which may be partial. */
typedef struct trial {
    ft_recipe recipe;
    ft_calibration_options job;
} trial;

static void begin(trial *t, const char *input, const char *text)
{
    char words[200], *rest = words;
    snprintf(words, sizeof words, "%s", text);
    *t = (trial){ .recipe = { .group = 32, .group_pad = true } };
    if (ft_scheme_parse(strtok_r(words, " ", &rest), &t->recipe.scheme, &err) != FT_OK)
        bail_out("%s", text);
    for (char *rule; (rule = strtok_r(NULL, " ", &rest)) != NULL;)
        if (ft_recipe_add_text(&t->recipe, rule, &err) != FT_OK)
            bail_out("%s", err.text);
    t->job = (ft_calibration_options){ .input = input,
                                       .output = quantized,
                                       .recipe = &t->recipe,
                                       .method = FT_METHOD_MAX,
                                       .force = true,
                                       .threads = 1 };
}

static ft_report run(trial *t)
{
    ft_report report;
    if (ft_calibrate(&t->job, NULL, &report, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_recipe_fini(&t->recipe);
    return report;
}

static void is_refused(trial *t, ft_status status, const char *reason)
{
    ft_report report;
    unlink(quantized);
    is_int(ft_calibrate(&t->job, NULL, &report, &err), status, "ft_calibrate() refuses the job: %s",
           reason);
    has(err.text, reason, "the ft_calibrate() error states the reason");
    ok(access(quantized, F_OK) != 0, "a refused job leaves no artifact behind");
    ft_report_fini(&report);
    ft_recipe_fini(&t->recipe);
}

static int count_scheme(const ft_report *report, ft_scheme scheme)
{
    int n = 0;
    for (size_t i = 0; i < report->weights; i++)
        n += report->weight[i].scheme == scheme;
    return n;
}

/* ---- Encoders ----------------------------------------------------------------------------- */

static const int32_t encoder_ids[] = { 4, 9, 2, 7, 7, 3, 12, 19, 5, 8 };
static const model_input encoder_input = { 2, 5, encoder_ids, NULL, NULL };

/* The SQNR of 4 and 8 bits for these small matrices of 8 to 12 columns per scale: 6 dB per bit. */
static void test_costs(const calibrated *files)
{
    static const struct {
        const char *scheme;
        double low, high;
    } costs[] = { { "w4a16", 18.0, 32.0 }, { "w8a16", 42.0, 56.0 }, { "w8a8-block", 42.0, 56.0 } };
    for (size_t i = 0; i < FT_COUNT(costs); i++) {
        trial t;
        begin(&t, files->real, costs[i].scheme);
        t.job.eval = files->samples;
        ft_report report = run(&t);
        int outside = 0;
        for (size_t k = 0; k < report.weights; k++)
            outside += !(report.weight[k].sqnr.per_channel > costs[i].low &&
                         report.weight[k].sqnr.per_channel < costs[i].high);
        is_int((long long) report.weights, 12, "%s: the report lists all twelve linears",
               costs[i].scheme);
        is_int(outside, 0, "the SQNR of every linear is between %.0f and %.0f dB", costs[i].low,
               costs[i].high);
        /* The output accumulates the errors of two small layers: 10 dB below each matrix. */
        ok(report.evaluation.samples == CALIBRATED_SAMPLES &&
               report.evaluation.sqnr_db > costs[i].low - 10.0,
           "the SQNR of the model output is %.1f dB", report.evaluation.sqnr_db);
        ok(report.held_out && report.samples == 0,
           "weight-only quantization observes no calibration sample");
        ft_report_fini(&report);
    }
}

static void test_means(const calibrated *files)
{
    for (int k = 0; k < 8; k++) {
        trial t;
        char what[80];
        begin(&t, files->real, k & 1 ? "w8a16" : "w4a16");
        t.recipe.asymmetric = k & 2;
        t.recipe.clip = k & 4 ? FT_CLIP_MSE : FT_CLIP_NONE;
        t.recipe.group = k == 3 ? 0 : 32;
        snprintf(what, sizeof what, "%s%s%s", ft_scheme_name(t.recipe.scheme),
                 t.recipe.asymmetric ? ", asymmetric" : "", t.recipe.clip ? ", clipped" : "");
        ft_report report = run(&t);
        is_what_quantized_values_mean(what, &encoder_input);
        ft_report_fini(&report);
    }
}

/* A mix of int8, group-wise and float linears, fake-quantized for the evaluation. */
static void test_mixed(const calibrated *files)
{
    trial t;
    begin(&t, files->real, "w8a8 layer\\.0\\.ffn=w8a16 layer\\.1\\.attn\\.out=float");
    t.job.data = files->samples;
    t.job.eval = files->samples;
    ft_report report = run(&t);
    is_int(count_scheme(&report, FT_SCHEME_W8A8), 9,
           "a mixed recipe quantizes nine linears to w8a8");
    is_int(count_scheme(&report, FT_SCHEME_W8A16), 2,
           "a mixed recipe quantizes two linears to w8a16");
    is_int(count_scheme(&report, FT_SCHEME_FLOAT), 1, "a mixed recipe keeps one linear float");
    ok(report.evaluation.sqnr_db > 20.0, "a mixed recipe reaches an SQNR of %.1f dB",
       report.evaluation.sqnr_db);
    ft_report_fini(&report);
    ft_model *model = calibrated_open(quantized, NULL);
    is_str(ft_model_get_info(model).precision, "int8",
           "an artifact with int8 and group-wise linears has the precision int8");
    ft_model_close(model);

    begin(&t, files->real, "w8a8 layer\\.1=float");
    t.job.data = files->samples;
    ft_report half = run(&t);
    begin(&t, files->real, "w8a8");
    t.job.data = files->samples;
    ft_report all = run(&t);
    ok(half.points < all.points,
       "values that only float linears read are not calibration points: %zu of %zu points remain",
       half.points, all.points);
    ft_report_fini(&half);
    ft_report_fini(&all);
}

/* The artifact computes on int8 values what it computes on the same values held in float. */
static void is_computed_as_faked(const char *what)
{
    size_t n, m;
    ft_model *int8 = calibrated_open(quantized, NULL);
    ft_model *faked = calibrated_open(quantized, &(ft_model_options){ .fake = true });
    float *a = calibrated_result(int8, &encoder_input, "last_hidden_state", &n);
    float *b = calibrated_result(faked, &encoder_input, "last_hidden_state", &m);
    ok(n == m && memcmp(a, b, n * sizeof *a) == 0,
       "%s: int8 and fake-quantized plans of the artifact give the same bytes", what);
    free(a);
    free(b);
    ft_model_close(int8);
    ft_model_close(faked);
}

/* w8a8-dynamic: with samples, attention computes on int8 values with static scales. */
static void test_row_scales(const calibrated *files)
{
    static const struct {
        const char *recipe, *what;
        bool has_samples;
        size_t per_token, points;
    } cases[] = { { "w8a8-dynamic", "w8a8-dynamic without samples", false, 0, 0 },
                  { "w8a8-dynamic", "w8a8-dynamic with samples", true, 8, 16 },
                  { "w8a8 ffn=w8a8-dynamic", "w8a8 with dynamic feed-forward layers", true, 4, 16 },
                  { "w4a16 up=w8a8-dynamic", "w4a16 with a dynamic matrix", false, 0, 0 } };
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        trial t;
        size_t per_token = 0;
        begin(&t, files->real, cases[i].recipe);
        t.job.data = cases[i].has_samples ? files->samples : NULL;
        t.job.eval = files->samples;
        ft_report report = run(&t);
        for (size_t k = 0; k < report.points; k++)
            per_token += report.point[k].per_token;
        is_int((long long) per_token, (long long) cases[i].per_token,
               "%s: the expected points of an encoder have a scale per token", cases[i].what);
        ok(i == 3 || report.evaluation.sqnr_db > 25.0, "%s: the SQNR is %.1f dB", cases[i].what,
           report.evaluation.sqnr_db);
        is_computed_as_faked(cases[i].what);
        ft_report_fini(&report);
    }
    trial t;
    begin(&t, files->real, "w8a8 up=w8a8-dynamic");
    t.job.data = files->samples;
    t.job.int8_residual = true;
    is_refused(&t, FT_EARG,
               "an int8 residual stream needs all linears in w8a8, but layer.0.ffn.up.weight is "
               "w8a8-dynamic");
}

static void test_dry_run(const calibrated *files)
{
    trial t;
    begin(&t, files->real, "w4a16");
    t.job.eval = files->samples;
    ft_report wet = run(&t);
    unlink(quantized);
    begin(&t, files->real, "w4a16");
    t.job.eval = files->samples;
    t.job.dry_run = true;
    ft_report dry = run(&t);
    ok(access(quantized, F_OK) != 0, "a dry run writes no artifact");
    ok(wet.weight[3].sqnr.per_channel == dry.weight[3].sqnr.per_channel &&
           wet.evaluation.sqnr_db == dry.evaluation.sqnr_db,
       "a dry run reports the figures of a full calibration");
    ft_report_fini(&wet);
    ft_report_fini(&dry);
    begin(&t, files->real, "w4a16");
    t.job.output = NULL;
    t.job.dry_run = true;
    dry = run(&t);
    ok(dry.weights == 12, "a dry run needs no output path");
    ft_report_fini(&dry);
}

static void test_bytes(const calibrated *files)
{
    unsigned char *bytes[2];
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        trial t;
        begin(&t, files->real, "w4a16 up=w8a8-block");
        t.recipe.clip = FT_CLIP_MSE;
        t.job.threads = 1 + 2 * i;
        ft_report report = run(&t);
        ft_report_fini(&report);
        bytes[i] = folder_read(quantized, &size[i]);
    }
    ok(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0,
       "three threads write the bytes of one thread");
    free(bytes[0]);
    free(bytes[1]);
}

static void test_refusals(const calibrated *files)
{
    trial t;
    begin(&t, files->real, "w4a16");
    t.recipe.group_pad = false;
    is_refused(&t, FT_EARG, "layer.0.attn.q.weight: 8 columns are not a multiple of group size 32");
    begin(&t, files->real, "w4a16 fnn=float");
    is_refused(&t, FT_EARG, "\"fnn\" matches the name of no quantizable matrix");
    begin(&t, files->real, "w4a16 embed\\.word=w8a16");
    is_refused(&t, FT_EARG, "\"embed\\.word\" matches the name of no quantizable matrix");
    begin(&t, files->real, "w4a16 .=float");
    is_refused(&t, FT_EARG, "the recipe quantizes no matrix");
    begin(&t, files->real, "w8a8");
    is_refused(&t, FT_EARG, "w8a8 needs samples");
    begin(&t, files->real, "w4a16");
    t.recipe.quantized_head = true;
    is_refused(&t, FT_EUNSUPPORTED, "a quantized head is for decoders; family bert is not one");
    begin(&t, files->real, "w8a8 up=w8a16");
    t.job.data = files->samples;
    t.job.int8_residual = true;
    is_refused(
        &t, FT_EARG,
        "an int8 residual stream needs all linears in w8a8, but layer.0.ffn.up.weight is w8a16");
    begin(&t, files->real, "w4a16");
    t.job.save = "never.counts";
    is_refused(&t, FT_EARG, "no matrix is w8a8, so there are no counters to save or merge");
    begin(&t, files->quantized, "w4a16");
    is_refused(&t, FT_EARG, "has state int8, expected a float artifact");
}

/* ---- Data-driven quantization ------------------------------------------------------------- */

/* Which of imatrix, AWQ, GPTQ and GPTAQ to use; the rest is as in begin(). */
enum { IMATRIX = 1, AWQ = 2, GPTQ = 4, GPTAQ = 8 };

static void begin_learning(trial *t, const char *input, const char *text, int what,
                           const char *samples)
{
    begin(t, input, text);
    t->recipe.clip = what & IMATRIX ? FT_CLIP_IMATRIX : FT_CLIP_NONE;
    t->recipe.awq = what & AWQ;
    t->recipe.round = what & GPTAQ  ? FT_ROUND_GPTAQ
                      : what & GPTQ ? FT_ROUND_GPTQ
                                    : FT_ROUND_NEAREST;
    t->job.data = samples;
}

/* The bytes of an artifact that is made with `threads` and `memory` for the moments. */
static unsigned char *learned(const char *input, const char *text, int what, const char *samples,
                              int threads, size_t memory, size_t *size)
{
    trial t;
    begin_learning(&t, input, text, what, samples);
    t.job.threads = threads;
    t.job.memory = memory;
    ft_report report = run(&t);
    ft_report_fini(&report);
    return folder_read(quantized, size);
}

static void test_same_bytes(const char *input, const char *text, int what, const char *samples)
{
    size_t size[3];
    const char *round = what & GPTAQ ? "GPTAQ" : "GPTQ";
    unsigned char *one = learned(input, text, what, samples, 1, 0, &size[0]);
    unsigned char *three = learned(input, text, what, samples, 3, 0, &size[1]);
    unsigned char *passes = learned(input, text, what, samples, 2, 1, &size[2]);
    ok(size[0] == size[1] && memcmp(one, three, size[0]) == 0,
       "imatrix, AWQ and %s with three threads write the bytes of one thread", round);
    ok(size[0] == size[2] && memcmp(one, passes, size[0]) == 0,
       "imatrix, AWQ and %s in many passes write the bytes of one pass", round);
    free(one);
    free(three);
    free(passes);
}

/* The sum of the squared relative output errors of all matrices. */
static double lost_in_results(const char *input, const char *text, int what, const char *samples,
                              const char *method)
{
    trial t;
    double sum = 0.0;
    int unknown = 0, others = 0;
    begin_learning(&t, input, text, what, samples);
    ft_report report = run(&t);
    for (size_t i = 0; i < report.weights; i++) {
        const ft_weight_report *w = &report.weight[i];
        if (!ft_scheme_is_groupwise(w->scheme))
            continue;
        sum += w->output_error * w->output_error;
        unknown += !(w->output_error > 0.0 && w->output_error < 1.0);
        others += strcmp(w->method, method) != 0;
    }
    is_int(unknown, 0, "%s: the report gives the relative output error of every matrix", method);
    is_int(others, 0, "the report names the methods that quantized every matrix");
    ok(report.samples == 6, "the report counts six calibration samples");
    ok(what & AWQ ? report.folded_inputs > 0 && report.folded_inputs <= report.foldable_inputs
                  : report.foldable_inputs == 0,
       "AWQ folds scales into the producers of %zu of %zu inputs", report.folded_inputs,
       report.foldable_inputs);
    ft_report_fini(&report);
    return sum;
}

static void test_learning(const char *what, const char *real, const char *samples,
                          const model_input *input)
{
    char text[80];
    lost_in_results(real, "w4a16", IMATRIX, samples, "imatrix");
    if (input != NULL)
        is_what_quantized_values_mean(what, input);
    double awq = lost_in_results(real, "w4a16", AWQ, samples, "awq");
    double gptq = lost_in_results(real, "w4a16", GPTQ, samples, "gptq");
    double both = lost_in_results(real, "w4a16", AWQ | GPTQ, samples, "awq, gptq");
    double all =
        lost_in_results(real, "w4a16", IMATRIX | AWQ | GPTQ, samples, "awq, imatrix, gptq");
    snprintf(text, sizeof text, "%s with imatrix, AWQ and GPTQ", what);
    if (input != NULL)
        is_what_quantized_values_mean(text, input);
    lost_in_results(real, "w4a16", IMATRIX | AWQ | GPTAQ, samples, "awq, imatrix, gptaq");
    snprintf(text, sizeof text, "%s with imatrix, AWQ and GPTAQ", what);
    if (input != NULL)
        is_what_quantized_values_mean(text, input);
    /* With so few samples one method may lose part of what another gains. */
    ok(gptq < 0.8 * awq && both < 1.2 * gptq && all < 1.2 * both,
       "%s: GPTQ leaves %.3f of the AWQ error, AWQ with GPTQ %.3f and all three methods %.3f", what,
       gptq / awq, both / awq, all / awq);
}

static void test_learning_refusals(const calibrated *files)
{
    trial t;
    begin_learning(&t, files->real, "w4a16", GPTQ, NULL);
    is_refused(&t, FT_EARG, "imatrix, AWQ, GPTQ and GPTAQ need samples");
    begin_learning(&t, files->real, "w8a8", IMATRIX, files->samples);
    is_refused(&t, FT_EARG, "imatrix, AWQ, GPTQ and GPTAQ are for group-wise quantized matrices");
    begin_learning(&t, files->real, "w4a16 up=w8a8", AWQ, files->samples);
    is_refused(&t, FT_EARG, "AWQ rescales values whose ranges w8a8 calibrates: use one of them");
    begin_learning(&t, files->real, "w4a16 up=w8a8", GPTQ, files->samples);
    t.job.merge = (const char *[]){ "some.counts" };
    t.job.n_merge = 1;
    is_refused(&t, FT_EARG, "need samples, not counters");
    begin_learning(&t, files->real, "w4a16 attn.[qkv]=float", AWQ, files->samples);
    is_refused(&t, FT_EUNSUPPORTED,
               "AWQ: no input of a group-wise quantized matrix can be scaled by its producer");
}

/* A matrix that cannot be quantized is found while the file is written. */
static void test_no_number(tiny *checkpoint, const calibrated *files)
{
    ft_tensor *weight = tiny_find(checkpoint, "bert.encoder.layer.1.output.dense.weight");
    ((float *) weight->data)[5] = 1e9f;
    ft_artifact_close(converted(checkpoint, &(ft_convert_options){ 0 }));
    trial t;
    begin(&t, files->real, "w4a16");
    is_refused(&t, FT_EFORMAT,
               "layer.1.ffn.down.weight: row 0, column 5 is 1e+09, expected at most");
}

/* ---- Decoders ----------------------------------------------------------------------------- */

static const int32_t decoder_ids[] = { 50, 29, 76, 77, 53, 57, 95, 31, 27, 63, 40, 85 };
static const model_input decoder_input = { 2, 6, decoder_ids, NULL, NULL };

/* Writes a random model of the golden files to model.ft in its folder. */
static void make_variant(tiny *t, char real[128], const char *file, const char *name,
                         void (*make)(tiny *, const json_t *))
{
    json_t *variants = golden_json(file);
    make(t, llama_variant(variants, name));
    ft_artifact_close(converted(t, &(ft_convert_options){ 0 }));
    json_decref(variants);
    snprintf(real, 128, "%s/model.ft", t->folder);
    snprintf(quantized, sizeof quantized, "%s/codes.ft", t->folder);
}

static const char *head_of(const ft_model *model)
{
    const json_t *recipe = ft_artifact_get_header(model->artifact)->recipe;
    return json_string_value(json_object_get(recipe, "head"));
}

static void is_head(const char *expected, bool tied)
{
    ft_model *model = calibrated_open(quantized, NULL);
    is_str(head_of(model), expected, "the precision of the output head is %s", expected);
    bool alone = ft_artifact_find(model->artifact, "head.weight") != NULL;
    ok(alone == !tied && model->config.tied == tied, "the output head is %s",
       tied ? "tied to the word embedding" : "a separate matrix");
    ft_model_close(model);
}

/* Six sources and six targets of 7 tokens. */
static void write_sources(const char *path)
{
    enum { ROWS = 6, COLS = 7 };
    int32_t ids[2][ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        ids[0][i] = 5 + i * 17 % 90;
        ids[1][i] = 5 + i * 29 % 90;
    }
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS } };
    ft_named_tensor named[] = { { "input_ids", tensor }, { "decoder_input_ids", tensor } };
    named[0].tensor.data = ids[0];
    named[1].tensor.data = ids[1];
    if (ft_safetensors_write(path, named, FT_COUNT(named), true, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void test_decoder(const char *name, bool tied)
{
    static const char *const recipes[] = { "w4a16", "w8a16 ffn=float", "w4a16 ^head=w8a16" };
    tiny checkpoint;
    char real[128], what[100];
    make_variant(&checkpoint, real, "llama-variants.json", name, llama_make);
    for (size_t i = 0; i < FT_COUNT(recipes); i++) {
        trial t;
        begin(&t, real, recipes[i]);
        ft_report report = run(&t);
        ft_report_fini(&report);
        snprintf(what, sizeof what, "%s: %s", name, recipes[i]);
        is_what_quantized_values_mean(what, &decoder_input);
        is_head(i == 2 ? "blocks" : "float", tied && i != 2);
    }
    trial t;
    begin(&t, real, "w8a8-dynamic attn=w8a16 ^head=w4a16");
    ft_report report = run(&t);
    is_int(count_scheme(&report, FT_SCHEME_W8A8_DYNAMIC), 6,
           "%s: int8 and group-wise linears can be mixed in one model", name);
    is_head("blocks", false);
    ft_report_fini(&report);
    size_t n, m;
    ft_model *model = calibrated_open(quantized, NULL), *whole = calibrated_open(real, NULL);
    float *a = calibrated_result(model, &decoder_input, "last_hidden_state", &n);
    float *b = calibrated_result(whole, &decoder_input, "last_hidden_state", &m);
    double signal = 0.0, noise = 0.0;
    for (size_t i = 0; i < n && n == m; i++) {
        signal += (double) b[i] * (double) b[i];
        noise += ((double) a[i] - (double) b[i]) * ((double) a[i] - (double) b[i]);
    }
    /* 8 bits keep 40 dB or more of one GEMM, and there are a dozen. */
    ok(n == m && noise < signal * 1e-3,
       "the model with mixed schemes computes nearly the same as the float model: SQNR %.1f dB",
       10.0 * log10(signal / noise));
    free(a);
    free(b);
    ft_model_close(model);
    ft_model_close(whole);
    begin(&t, real, "w8a8-dynamic attn=w8a8");
    is_refused(&t, FT_EARG, "w8a8 needs samples");
    char samples[128];
    snprintf(samples, sizeof samples, "%s/samples.safetensors", checkpoint.folder);
    write_sources(samples);
    test_learning(name, real, samples, &decoder_input);
    test_same_bytes(real, "w4a16 ^head=w8a16 up=w8a8-block", IMATRIX | AWQ | GPTQ, samples);
    test_same_bytes(real, "w4a16 ^head=w8a16 up=w8a8-block", IMATRIX | AWQ | GPTAQ, samples);
    tiny_remove(&checkpoint);
}

static void test_translator(const char *name)
{
    static const char *const schemes[] = { "w8a16", "w8a8-block", "w8a8-dynamic cross=w8a16" };
    tiny checkpoint;
    char real[128], sources[128];
    make_variant(&checkpoint, real, "translator-variants.json", name, translator_make);
    snprintf(sources, sizeof sources, "%s/sources.safetensors", checkpoint.folder);
    write_sources(sources);
    for (size_t i = 0; i < FT_COUNT(schemes); i++) {
        trial t;
        begin(&t, real, schemes[i]);
        t.job.eval = sources;
        ft_report report = run(&t);
        /* As above, for two dozen GEMMs with 8 bits. */
        ok(report.evaluation.samples == 6 && report.evaluation.sqnr_db > 28.0,
           "%s, %s: the quantized model reaches an SQNR of %.1f dB", name, schemes[i],
           report.evaluation.sqnr_db);
        ft_report_fini(&report);
    }
    test_learning(name, real, sources, NULL);
    test_same_bytes(real, "w8a16 cross=w4a16", IMATRIX | AWQ | GPTQ, sources);
    test_same_bytes(real, "w8a16 cross=w4a16", IMATRIX | AWQ | GPTAQ, sources);
    tiny_remove(&checkpoint);
}

int main(void)
{
    tiny t;
    calibrated files;
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    snprintf(quantized, sizeof quantized, "%s/codes.ft", t.folder);
    test_costs(&files);
    test_means(&files);
    test_row_scales(&files);
    test_mixed(&files);
    test_dry_run(&files);
    test_bytes(&files);
    test_refusals(&files);
    test_learning_refusals(&files);
    test_no_number(&t, &files);
    tiny_remove(&t);
    test_decoder("grouped", false);
    test_decoder("tied", true);
    test_translator("m2m");
    test_translator("marian-untied");
    return done_testing();
}
