/*
 * folded-t.c - the factors that calibration folds into a model, as its artifact stores them.
 *
 * A tiny Llama whose query heads share key/value heads is calibrated with SmoothQuant and with AWQ.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "runtime/container/features.h"
#include "runtime/graph/plan.h"
#include "runtime/model/folded.h"
#include "tests/lib/folder.h"
#include "tests/lib/forge.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, COLS = 6, LAYERS = 2, HEAD = 16 };

static ft_error err;
static tiny checkpoint;
static char real[128], samples[128], smoothed[128], scaled[128], forged[128];

static void must(ft_status status)
{
    if (status != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Artifacts ---------------------------------------------------------------------------- */

static char *at(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", checkpoint.folder, name);
    return path;
}

static void write_samples(void)
{
    static int32_t ids[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        ids[i] = 3 + (i * 17 + i * i * 3) % 87;
    const ft_named_tensor named = {
        "input_ids", { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS }, .data = ids }
    };
    must(ft_safetensors_write(at(samples, "samples.safetensors"), &named, 1, true, &err));
}

static void calibrate(const char *output, const ft_recipe *recipe)
{
    ft_report report;
    must(ft_calibrate(&(ft_calibration_options){ .input = real,
                                                 .output = output,
                                                 .data = samples,
                                                 .recipe = recipe,
                                                 .smooth = FT_SMOOTH_ALPHA,
                                                 .smooth_alpha = 0.5,
                                                 .method = FT_METHOD_MAX,
                                                 .threads = 1 },
                      NULL, &report, &err));
    ft_report_fini(&report);
}

static void make_artifacts(void)
{
    const ft_recipe smooth = { .scheme = FT_SCHEME_W8A8_DYNAMIC };
    const ft_recipe awq = {
        .scheme = FT_SCHEME_W4A16, .group = 32, .group_pad = true, .awq = true
    };
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&checkpoint, llama_variant(variants, "grouped"));
    json_decref(variants);
    ft_artifact_close(converted(&checkpoint, &(ft_convert_options){ 0 }));
    at(real, "model.ft");
    at(forged, "forged.ft");
    write_samples();
    calibrate(at(smoothed, "smoothed.ft"), &smooth);
    calibrate(at(scaled, "scaled.ft"), &awq);
}

/* ---- Contents ----------------------------------------------------------------------------- */

static const float *vector(const ft_model *model, const char *name)
{
    const ft_artifact_tensor *tensor = ft_artifact_find(model->artifact, name);
    if (tensor == NULL)
        bail_out("%s is missing", name);
    return tensor->data;
}

static const float *divisor(const ft_model *model, const ft_folded *folded, const char *name)
{
    int value = ft_plan_find(&model->graph, name);
    if (value < 0 || folded->divisor[value] == NULL)
        bail_out("%s was not divided", name);
    return folded->divisor[value];
}

/* The largest relative difference of quantized weight * divisor from the float weight. */
static double norm_error(const ft_model *model, const ft_model *quantized, const ft_folded *folded)
{
    const float *a = vector(model, "layer.1.ffn.norm.weight"),
                *b = vector(quantized, "layer.1.ffn.norm.weight");
    const float *factor = divisor(quantized, folded, "layer.1.ffn.norm");
    double most = 0.0;
    for (int32_t i = 0; i < model->config.hidden; i++)
        most = fmax(most, fabs((double) (b[i] * factor[i]) / (double) a[i] - 1.0));
    return most;
}

static void test_contents(const char *what, const char *path)
{
    ft_model *model = calibrated_open(real, NULL), *quantized = calibrated_open(path, NULL);
    ft_folded folded;
    int wrong = 0;
    must(ft_folded_read(&folded, quantized, &err));
    size_t count = ft_folded_count(quantized->artifact);
    ok(count > 2 && count <= 4 * LAYERS, "%s: %zu values have factors", what, count);
    is_str(
        json_string_value(json_array_get(ft_artifact_get_header(quantized->artifact)->required, 0)),
        FT_FEATURE_FOLDED, "%s: the artifact requires a reader that knows them", what);
    /* 2^-23: a division and a product */
    near(norm_error(model, quantized, &folded), 0.0, 1.2e-7,
         "%s: a norm weight times its factors is that of the float model", what);
    const float *context = divisor(quantized, &folded, "layer.1.attn.context"),
                *values = divisor(quantized, &folded, "layer.1.attn.v");
    for (int i = 0; i < 4 * HEAD; i++) {
        float expected = values[i / (2 * HEAD) * HEAD + i % HEAD];
        wrong += context[i] < expected || context[i] > expected;
    }
    is_int(wrong, 0, "%s: two query heads share the factors of their key/value head", what);
    ft_folded_fini(&folded);
    ft_model_close(model);
    ft_model_close(quantized);
}

static void test_float(void)
{
    ft_model *model = calibrated_open(real, NULL);
    ft_folded folded;
    int divided = 0;
    must(ft_folded_read(&folded, model, &err));
    for (int i = 0; i < folded.nvalue; i++)
        divided += folded.divisor[i] != NULL;
    is_int(divided, 0, "nothing is folded into a float artifact");
    is_int((int) ft_folded_count(model->artifact), 0, "a float artifact has no factors");
    ft_folded_fini(&folded);
    ft_model_close(model);
}

/* ---- Forged factors ----------------------------------------------------------------------- */

static void forge_open(forge *f)
{
    size_t bytes;
    unsigned char *data = folder_read(smoothed, &bytes);
    if (!forge_read(f, data, bytes))
        bail_out("not an artifact");
    free(data);
}

static ft_status open_forged(ft_model **out, forge *f)
{
    size_t bytes;
    unsigned char *data = forge_write(f, &bytes);
    FILE *file = fopen(forged, "wb");
    if (data == NULL || file == NULL || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        bail_out("cannot write %s", forged);
    free(data);
    forge_fini(f);
    return ft_model_open(out, forged, NULL, &err);
}

static float *factors(forge *f, const char *entry)
{
    forge_entry *found = forge_find(f, entry);
    if (found == NULL)
        bail_out("no %s", entry);
    return (float *) (void *) found->data;
}

static json_t *tensor_of(forge *f, const char *name)
{
    size_t i;
    json_t *tensor;
    json_array_foreach(json_object_get(f->manifest, "tensors"), i,
                       tensor) if (strcmp(json_string_value(json_object_get(tensor, "name")),
                                          name) == 0) return tensor;
    bail_out("no %s", name);
}

static void is_refused(forge *f, const char *text, const char *what)
{
    ft_model *model;
    ft_status status = open_forged(&model, f);
    bool refused = status == FT_EFORMAT && strstr(err.text, text) != NULL;
    ok(refused, "%s are refused", what);
    if (!refused)
        diag("status %d, %s", (int) status, status == FT_OK ? "" : err.text);
    if (status == FT_OK)
        ft_model_close(model);
}

static void test_elements(void)
{
    static const struct {
        float factor;
        const char *what;
    } wrong[] = { { 0.0f, "factors of zero" },
                  { -1.0f, "negative factors" },
                  { (float) INFINITY, "infinite factors" },
                  { (float) NAN, "factors that are NaN" } };
    forge f;
    for (size_t i = 0; i < FT_COUNT(wrong); i++) {
        forge_open(&f);
        factors(&f, "w/layer.0.attn.norm.folded")[5] = wrong[i].factor;
        is_refused(&f, "layer.0.attn.norm.folded: elements are not between", wrong[i].what);
    }
    forge_open(&f);
    factors(&f, "w/layer.0.attn.context.folded")[HEAD + 3] *= 2.0f;
    is_refused(&f, "layer.0.attn.context.folded: columns of one row have different factors",
               "different factors of columns that come from one row");
}

static void rename_tensor(forge *f, const char *from, const char *to)
{
    char entry[80];
    json_t *tensor = tensor_of(f, from);
    snprintf(entry, sizeof entry, "w/%s", from);
    forge_entry *found = forge_find(f, entry);
    snprintf(entry, sizeof entry, "w/%s", to);
    free(found->name);
    found->name = strdup(entry);
    json_object_set_new(tensor, "name", json_string(to));
    json_object_set_new(tensor, "entry", json_string(entry));
}

static void set_shape(forge *f, const char *name, json_int_t elements)
{
    char entry[80];
    snprintf(entry, sizeof entry, "w/%s", name);
    forge_resize(forge_find(f, entry), (size_t) elements * sizeof(float), 0x3f);
    json_object_set_new(tensor_of(f, name), "shape", json_pack("[I]", elements));
}

static void test_vectors(void)
{
    forge f;
    forge_open(&f);
    set_shape(&f, "layer.0.attn.norm.folded", 63);
    is_refused(&f, "layer.0.attn.norm.folded: has 63 elements, but is no value of that width",
               "factors of another length");
    forge_open(&f);
    json_object_set_new(tensor_of(&f, "layer.0.attn.norm.folded"), "shape",
                        json_pack("[i,i]", 8, 8));
    is_refused(&f, "layer.0.attn.norm.folded: folded factors are an F32 vector",
               "factors in two dimensions");
    forge_open(&f);
    json_object_set_new(tensor_of(&f, "layer.0.attn.norm.folded"), "dtype", json_string("I32"));
    is_refused(&f, "layer.0.attn.norm.folded: folded factors are an F32 vector", "integer factors");
    forge_open(&f);
    rename_tensor(&f, "layer.0.attn.norm.folded", "layer.0.attn.norm.twisted");
    is_refused(&f, "layer.0.attn.norm.twisted: folded factors are an F32 vector named VALUE.folded",
               "factors without the suffix");
    forge_open(&f);
    rename_tensor(&f, "layer.0.attn.norm.folded", "layer.7.attn.norm.folded");
    is_refused(&f, "layer.7.attn.norm.folded: has 64 elements, but is no value",
               "factors of an unknown value");
    forge_open(&f);
    rename_tensor(&f, "layer.0.attn.norm.folded", "layer.0.attn.sum.folded");
    is_refused(&f, "layer.0.attn.sum.folded: has 64 elements, but is no value",
               "factors of a value that its producer cannot scale");
    forge_open(&f);
    json_object_set_new(tensor_of(&f, "layer.0.attn.norm.weight"), "role", json_string("folded"));
    is_refused(&f, "layer.0.attn.norm.weight: role folded, expected vector",
               "weights that claim to be factors");
}

/* An artifact without the factors, as an earlier version writes it. */
static void test_ignored(void)
{
    static const int32_t ids[COLS] = { 4, 8, 15, 16, 23, 42 };
    const model_input input = { 1, COLS, ids, NULL, NULL };
    forge f;
    ft_model *without, *model = calibrated_open(smoothed, NULL);
    size_t n, m, dropped = 0;
    forge_open(&f);
    for (size_t i = f.count; i-- > 0;)
        if (strstr(f.entry[i].name, FT_FOLDED_SUFFIX) != NULL) {
            forge_drop(&f, i, true);
            dropped++;
        }
    forge_set(&f, "requires", NULL);
    must(open_forged(&without, &f));
    float *a = calibrated_result(model, &input, "logits", &n),
          *b = calibrated_result(without, &input, "logits", &m);
    ok(dropped == ft_folded_count(model->artifact) && n == m && memcmp(a, b, n * sizeof *a) == 0,
       "an artifact without the factors is read, and computes the same bits");
    free(a);
    free(b);
    ft_model_close(model);
    ft_model_close(without);
}

int main(void)
{
    make_artifacts();
    test_contents("SmoothQuant", smoothed);
    test_contents("AWQ", scaled);
    test_float();
    test_elements();
    test_vectors();
    test_ignored();
    tiny_remove(&checkpoint);
    return done_testing();
}
