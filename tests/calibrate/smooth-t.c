/*
 * smooth-t.c - SmoothQuant of whole models: the rewritten model computes the same, and
 * ft_calibrate() uses it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "calibrate/smooth/smooth.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 40, COLS = 6, PATH = 128 };

static ft_error err;

/* ---- Models ------------------------------------------------------------------------------- */

/* A checkpoint as float artifact, and samples for it. */
typedef struct subject {
    tiny checkpoint;
    char model[PATH], samples[PATH], smooth[PATH], output[PATH];
    ft_named_tensor named[2];
    size_t count;
} subject;

static void write_subject(subject *s)
{
    const char *folder = s->checkpoint.folder;
    ft_artifact_close(converted(&s->checkpoint, &(ft_convert_options){ 0 }));
    snprintf(s->model, PATH, "%s/model.ft", folder);
    snprintf(s->samples, PATH, "%s/samples.safetensors", folder);
    snprintf(s->smooth, PATH, "%s/smooth.ft", folder);
    snprintf(s->output, PATH, "%s/int8.ft", folder);
    if (ft_safetensors_write(s->samples, s->named, s->count, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* Token ids below `words`. */
static ft_named_tensor texts(const char *name, int words, int which)
{
    static int32_t ids[2][ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        ids[which][i] = 3 + (i * 17 + which * 5 + i * i * 3) % (words - 3);
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS }, .data = ids[which] };
    return (ft_named_tensor){ name, tensor };
}

static void make(subject *s, const char *file, const char *name,
                 void (*maker)(tiny *, const json_t *))
{
    json_t *variants = golden_json(file);
    maker(&s->checkpoint, llama_variant(variants, name));
    s->named[0] = maker == vit_make ? (ft_named_tensor){ "pixel_values",
                                                         vit_images(llama_variant(variants, name)) }
                                    : texts("input_ids", 90, 0);
    s->named[1] = texts("decoder_input_ids", 90, 1);
    s->count = maker == translator_make ? 2 : 1;
    json_decref(variants);
    write_subject(s);
    if (maker == vit_make)
        free(s->named[0].tensor.data);
}

static void make_llama(subject *s, const char *name)
{
    make(s, "llama-variants.json", name, llama_make);
}

static void make_bert(subject *s)
{
    tiny_make_classifier(&s->checkpoint);
    s->named[0] = texts("input_ids", 20, 0);
    s->count = 1;
    write_subject(s);
}

/* ---- The rewritten model ------------------------------------------------------------------ */

static ft_smoothquant smoothed(const subject *s, ft_scheme scheme, double alpha)
{
    ft_recipe recipe = { .scheme = scheme };
    ft_smoothquant smoothing;
    ft_model *model;
    ft_dataset data;
    ft_quantized_weight *quantized;
    ft_artifact_writer *writer;
    size_t count;
    if (ft_model_open_with_config(&model, s->model, NULL,
                                  &(ft_quant_config){ .mode = FT_MODE_OBSERVE }, &err) != FT_OK ||
        ft_dataset_read(&data, s->samples, model, &err) != FT_OK ||
        ft_quantized_weights_new(&quantized, &count, model, &recipe, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_smooth_options options = {
        .quantized = quantized,
        .count = count,
        .alpha = alpha,
        .stats = { .model = model, .data = &data, .last = data.rows, .threads = 1 }
    };
    if (ft_smoothquant_init(&smoothing, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_rewrite rewrite = ft_smoothquant_rewrite(&smoothing);
    if (ft_artifact_create(&writer, s->smooth, true, &err) != FT_OK ||
        ft_rewrite_artifact(writer, &rewrite, &err) != FT_OK ||
        ft_artifact_commit(writer, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_artifact_discard(writer);
    ft_smoothquant_fini(&smoothing);
    ft_quantized_weights_free(quantized, count);
    ft_dataset_fini(&data);
    ft_model_close(model);
    return smoothing;
}

/* The last hidden state on all samples. */
static float *run_samples(const char *path, const subject *s, size_t *n)
{
    ft_model *model = calibrated_open(path, NULL);
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    ft_dataset data;
    if (ft_dataset_read(&data, s->samples, model, &err) != FT_OK ||
        ft_dataset_set_inputs(&data, 0, data.rows, session, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK)
        bail_out("%s", err.text);
    float *out = calibrated_get(session, "last_hidden_state", n);
    ft_dataset_fini(&data);
    ft_session_close(session);
    ft_model_close(model);
    return out;
}

/* Relative to the RMS of the outputs. */
static double largest_difference(const subject *s)
{
    size_t n, m;
    float *a = run_samples(s->model, s, &n), *b = run_samples(s->smooth, s, &m);
    double most = n == m ? 0.0 : HUGE_VAL, square = 0.0;
    for (size_t i = 0; i < n && n == m; i++) {
        most = fmax(most, fabs((double) a[i] - (double) b[i]));
        square += (double) a[i] * (double) a[i];
    }
    free(a);
    free(b);
    return most / sqrt(square / (double) n);
}

/* Counts the tensors that differ, and those of them that are not F32. */
static int changed_tensors(const subject *s, int *other_dtype)
{
    ft_artifact *a, *b;
    int changed = 0;
    *other_dtype = 0;
    if (ft_artifact_open(&a, s->model, FT_VERIFY_SHA256, &err) != FT_OK ||
        ft_artifact_open(&b, s->smooth, FT_VERIFY_SHA256, &err) != FT_OK)
        bail_out("%s", err.text);
    for (size_t i = 0; i < ft_artifact_count(a); i++) {
        const ft_artifact_tensor *from = ft_artifact_at(a, i), *to = ft_artifact_at(b, i);
        bool same = from->dtype == to->dtype && from->bytes == to->bytes &&
                    memcmp(from->data, to->data, from->bytes) == 0;
        changed += !same;
        *other_dtype += !same && to->dtype != FT_F32;
    }
    ft_artifact_close(a);
    ft_artifact_close(b);
    return changed;
}

/* `inputs`: how many can be scaled; `changed`: the tensors that this changes. */
static void test_equal(const char *what, subject *s, ft_scheme scheme, int inputs, int changed)
{
    int other_dtype;
    ft_smoothquant all = smoothed(s, scheme, 0.5);
    is_int((int) all.scaled_inputs, inputs, "%s: %d inputs are scaled by a given alpha", what,
           inputs);
    /* As in fold_ranges-t.c: three roundings of 2^-24 for each factor, amplified by the layers. */
    near(largest_difference(s), 0.0, 1e-5, "%s: the rewritten model computes the same", what);
    is_int(changed_tensors(s, &other_dtype), changed,
           "%s: only the readers and producers of scaled inputs change", what);
    is_int(other_dtype, 0, "%s: changed tensors are float32", what);
    ft_smoothquant searched = smoothed(s, scheme, -1.0);
    ok(searched.scaled_inputs <= all.inputs && searched.error_ratio <= 1.0,
       "%s: the search scales %zu inputs and leaves %.2f of the error", what,
       searched.scaled_inputs, searched.error_ratio);
    near(largest_difference(s), 0.0, 1e-5, "%s: the model of the search computes the same", what);
    tiny_remove(&s->checkpoint);
}

static void test_models(void)
{
    subject s;
    static const char *const llamas[] = { "grouped", "qwen2", "one-key-head", "biases" };
    for (size_t i = 0; i < FT_COUNT(llamas); i++) {
        make_llama(&s, llamas[i]);
        ft_model *model = calibrated_open(s.model, NULL);
        int layers = model->config.layers;
        bool qkv_bias = model->config.qkv_bias, ffn_bias = model->config.ffn_bias;
        ft_model_close(model);
        /* 2 norms, 7 matrices, and the biases of values and of the up projection. */
        test_equal(llamas[i], &s, FT_SCHEME_W8A8_DYNAMIC, 4 * layers,
                   layers * (9 + qkv_bias + ffn_bias));
    }
    make_llama(&s, "grouped");
    test_equal("static llama", &s, FT_SCHEME_W8A8, 8, 18);
    make_bert(&s);
    test_equal("bert", &s, FT_SCHEME_W8A8, 2, 6); /* values, their biases, and attn.out */
    make(&s, "translator-variants.json", "m2m", translator_make);
    ft_smoothquant m2m = smoothed(&s, FT_SCHEME_W8A8_DYNAMIC, 0.5);
    is_int((int) m2m.scaled_inputs, 20, "m2m: 20 inputs are scaled by a given alpha");
    near(largest_difference(&s), 0.0, 1e-5, "m2m: the rewritten model computes the same");
    tiny_remove(&s.checkpoint);
    make(&s, "vit-variants.json", "classes", vit_make);
    ft_smoothquant vit = smoothed(&s, FT_SCHEME_W8A8, 0.5);
    ok(vit.scaled_inputs > 0, "vit: %zu inputs are scaled by a given alpha", vit.scaled_inputs);
    near(largest_difference(&s), 0.0, 1e-5, "vit: the rewritten model computes the same");
    tiny_remove(&s.checkpoint);
}

/* ---- Calibration -------------------------------------------------------------------------- */

static ft_calibration_options job_of(const subject *s, const ft_recipe *recipe,
                                     ft_smooth_mode smooth)
{
    return (ft_calibration_options){ .input = s->model,
                                     .output = s->output,
                                     .data = s->samples,
                                     .recipe = recipe,
                                     .smooth = smooth,
                                     .smooth_alpha = 0.5,
                                     .method = FT_METHOD_MAX,
                                     .force = true,
                                     .threads = 1 };
}

static ft_report calibrate(const ft_calibration_options *job)
{
    ft_report report;
    if (ft_calibrate(job, NULL, &report, &err) != FT_OK)
        bail_out("%s", err.text);
    return report;
}

/* The member "smooth" of the artifact's recipe as JSON; for free(). */
static char *recorded(const char *path)
{
    ft_model *model = calibrated_open(path, NULL);
    const json_t *recipe = ft_artifact_get_header(model->artifact)->recipe;
    char *text = json_dumps(json_object_get(recipe, "smooth"), JSON_ENCODE_ANY);
    ft_model_close(model);
    return text != NULL ? text : ft_strdup("nothing");
}

static void is_recorded(const subject *s, ft_calibration_options job, const char *expected,
                        const char *what)
{
    int before = folder_count(s->checkpoint.folder) + (access(s->output, F_OK) != 0);
    ft_report report = calibrate(&job);
    char *found = recorded(s->output);
    is_str(found, expected, "%s: the recipe records %s", what, expected);
    is_int(folder_count(s->checkpoint.folder), before, "%s: no temporary file is left", what);
    free(found);
    ft_report_fini(&report);
}

/* Saves counters for a run that merges them. */
static void save_counters(const subject *s, const char *path)
{
    ft_calibration_options job = job_of(s, NULL, FT_SMOOTH_AUTO);
    job.output = NULL;
    job.save = path;
    ft_report report = calibrate(&job);
    ft_report_fini(&report);
}

static void test_recipes(void)
{
    static const ft_recipe dynamic = { .scheme = FT_SCHEME_W8A8_DYNAMIC };
    subject s;
    char counters[PATH];
    make_llama(&s, "grouped");
    is_recorded(&s, job_of(&s, &dynamic, FT_SMOOTH_AUTO), "\"search\"", "auto, w8a8-dynamic");
    is_recorded(&s, job_of(&s, NULL, FT_SMOOTH_AUTO), "\"search\"", "auto, w8a8");
    is_recorded(&s, job_of(&s, NULL, FT_SMOOTH_ALPHA), "0.5", "alpha 0.5");
    is_recorded(&s, job_of(&s, NULL, FT_SMOOTH_NONE), "nothing", "none");
    ft_calibration_options job = job_of(&s, NULL, FT_SMOOTH_AUTO);
    job.last = 31;
    is_recorded(&s, job, "nothing", "auto with 31 samples");
    job = job_of(&s, &dynamic, FT_SMOOTH_AUTO);
    job.data = NULL;
    is_recorded(&s, job, "nothing", "auto without samples");
    snprintf(counters, sizeof counters, "%s/counters", s.checkpoint.folder);
    save_counters(&s, counters);
    job = job_of(&s, NULL, FT_SMOOTH_AUTO);
    job.merge = (const char *[]){ counters };
    job.n_merge = 1;
    is_recorded(&s, job, "nothing", "auto with saved counters");
    tiny_remove(&s.checkpoint);
}

/* The loss of the plan with static scales. */
static double static_loss(const subject *s, ft_smooth_mode smooth)
{
    ft_calibration_options job = job_of(s, NULL, smooth);
    ft_report report = calibrate(&job);
    double loss = report.mixed.initial_loss;
    ft_report_fini(&report);
    return loss;
}

static void test_mixed(void)
{
    subject s;
    make_llama(&s, "grouped");
    double without = static_loss(&s, FT_SMOOTH_NONE), with = static_loss(&s, FT_SMOOTH_ALPHA);
    /* Ranges of one model that are used for the other clip most values. */
    ok(with < 3.0 * without,
       "the plan is chosen for the rewritten model: a loss of %.3g with factors, %.3g without",
       with, without);
    tiny_remove(&s.checkpoint);
}

static unsigned char *bytes_of(const subject *s, int threads, size_t memory, size_t *size)
{
    ft_calibration_options job = job_of(s, NULL, FT_SMOOTH_SEARCH);
    job.threads = threads;
    job.memory = memory;
    ft_report report = calibrate(&job);
    ft_report_fini(&report);
    return folder_read(s->output, size);
}

static void test_same_bytes(void)
{
    subject s;
    size_t size[3];
    make_llama(&s, "biases");
    unsigned char *one = bytes_of(&s, 1, 0, &size[0]), *three = bytes_of(&s, 3, 0, &size[1]);
    unsigned char *passes = bytes_of(&s, 2, 1, &size[2]);
    ok(size[0] == size[1] && memcmp(one, three, size[0]) == 0,
       "smoothing with three threads writes the bytes of one thread");
    ok(size[0] == size[2] && memcmp(one, passes, size[0]) == 0,
       "smoothing in many passes writes the bytes of one pass");
    free(one);
    free(three);
    free(passes);
    tiny_remove(&s.checkpoint);
}

static void test_encoders(void)
{
    subject s;
    ft_report report;
    make_bert(&s);
    is_recorded(&s, job_of(&s, NULL, FT_SMOOTH_AUTO), "nothing", "auto, encoder");
    is_recorded(&s, job_of(&s, NULL, FT_SMOOTH_ALPHA), "0.5", "alpha, encoder");
    ft_recipe recipe = { .scheme = FT_SCHEME_W8A8 };
    if (ft_recipe_add(&recipe, "attn.out", FT_SCHEME_FLOAT, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_calibration_options job = job_of(&s, &recipe, FT_SMOOTH_SEARCH);
    is_int(ft_calibrate(&job, NULL, &report, &err), FT_EUNSUPPORTED,
           "ft_calibrate() refuses to smooth a model without an input that can be scaled");
    has(err.text, "no input of an int8 matrix can be scaled by its producer",
        "the message says that no input can be scaled");
    ft_report_fini(&report);
    ft_recipe_fini(&recipe);
    tiny_remove(&s.checkpoint);
}

int main(void)
{
    test_models();
    test_recipes();
    test_mixed();
    test_same_bytes();
    test_encoders();
    return done_testing();
}
