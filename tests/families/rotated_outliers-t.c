/*
 * rotated_outliers-t.c - a rotation spreads outlier channels, so that int8 loses less.
 *
 * The model is "grouped" of tests/golden/llama-variants.json with more columns.  Two channels of
 * its residual stream become 20 times as large, and the matrices that read them get columns that
 * are 20 times as small.  With one scale per token, the other channels are left with few of the 255
 * values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "runtime/base/affix.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/variant.h"

#include <stdlib.h>

enum { OUTLIER_A = 5, OUTLIER_B = 41 };
static const float magnitude = 20.0f;

typedef float logits[VARIANT_ROWS * VARIANT_WORDS];

/* ---- Outliers ------------------------------------------------------------------------------- */

static void scale_row(ft_tensor *tensor, int64_t row, float factor)
{
    float *value = tensor->data;
    for (int64_t i = 0; i < tensor->dim[1]; i++)
        value[row * tensor->dim[1] + i] *= factor;
}

static void scale_column(ft_tensor *tensor, int64_t column, float factor)
{
    float *value = tensor->data;
    for (int64_t i = 0; i < tensor->dim[0]; i++)
        value[i * tensor->dim[1] + column] *= factor;
}

static void enlarge_channel(tiny *t, int64_t channel)
{
    for (size_t i = 0; i < t->count; i++) {
        ft_tensor *tensor = &t->tensor[i].tensor;
        const char *name = t->name[i];
        if (tensor->ndim < 2)
            continue;
        if (ft_ends_with(name, "o_proj.weight") || ft_ends_with(name, "down_proj.weight"))
            scale_row(tensor, channel, magnitude);
        else if (ft_ends_with(name, "embed_tokens.weight"))
            scale_column(tensor, channel, magnitude);
        else
            scale_column(tensor, channel, 1.0f / magnitude);
    }
}

static void scale(ft_tensor *tensor, float factor)
{
    float *value = tensor->data;
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        value[i] *= factor;
}

/*
 * The root mean square of the residual stream has grown, which norms undo in the other channels.
 * Matrices shrink as their columns are more than those of the variant.
 */
static void rescale(tiny *t, int hidden)
{
    for (size_t i = 0; i < t->count; i++) {
        ft_tensor *tensor = &t->tensor[i].tensor;
        if (tensor->ndim == 1)
            scale(tensor, magnitude * sqrtf(2.0f / (float) hidden));
        else if (!ft_ends_with(t->name[i], "embed_tokens.weight"))
            scale(tensor, sqrtf(64.0f / (float) hidden));
    }
}

static void make(tiny *t, const json_t *variant, int hidden)
{
    llama_make(t, variant);
    rescale(t, hidden);
    enlarge_channel(t, OUTLIER_A);
    enlarge_channel(t, OUTLIER_B);
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/* The logits of all rows of the variant by the artifact at `path`. */
static void run(const char *path, const json_t *variant, logits out)
{
    ft_model *model;
    ft_session *session;
    ft_error err;
    const json_t *list = json_object_get(variant, "rows");
    variant_rows rows = variant_read(list, 0, (int) json_array_size(list));
    const ft_session_options options = { .threads = 1,
                                         .context = rows.cols,
                                         .cache_tokens = 64 * VARIANT_ROWS * 2 };
    if (ft_model_open(&model, path, NULL, &err) != FT_OK ||
        ft_session_open(&session, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    variant_set(session, "input_ids", "attention_mask", &rows);
    variant_run(session, rows.rows, out);
    ft_session_close(session);
    ft_model_close(model);
}

static void quantize(const char *from, const char *to, ft_scheme scheme)
{
    const ft_recipe recipe = { .scheme = scheme };
    const ft_calibration_options options = { .input = from,
                                             .output = to,
                                             .recipe = &recipe,
                                             .method = FT_METHOD_MAX,
                                             .force = true,
                                             .threads = 1 };
    ft_report report;
    ft_error err;
    if (ft_calibrate(&options, NULL, &report, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_report_fini(&report);
}

/* Sums of squares: of the difference of both over that of the first. */
static double noise(const logits a, const logits b, size_t count)
{
    double signal = 0.0, difference = 0.0;
    for (size_t i = 0; i < count; i++) {
        signal += (double) a[i] * (double) a[i];
        difference += ((double) a[i] - (double) b[i]) * ((double) a[i] - (double) b[i]);
    }
    return difference / signal;
}

/* What quantization costs the model in *t, rotated or not. */
static double quantization_noise(tiny *t, const json_t *variant, bool rotate)
{
    char real[128], int8[128];
    logits before, after;
    size_t count = json_array_size(json_object_get(variant, "rows")) * VARIANT_WORDS;
    ft_artifact *artifact = converted(t, &(ft_convert_options){ .rotate = rotate });
    if (artifact == NULL)
        bail_out("%s", converted_problem(0));
    ft_artifact_close(artifact);
    snprintf(real, sizeof real, "%s/model.ft", t->folder);
    snprintf(int8, sizeof int8, "%s/int8.ft", t->folder);
    quantize(real, int8, FT_SCHEME_W8A8_DYNAMIC);
    run(real, variant, before);
    run(int8, variant, after);
    return noise(before, after, count);
}

static void test_columns(const json_t *grouped, int hidden)
{
    tiny t;
    json_t *variant = json_deep_copy(grouped);
    json_object_set_new(json_object_get(variant, "config"), "hidden_size", json_integer(hidden));
    make(&t, variant, hidden);
    double plain = quantization_noise(&t, variant, false);
    double rotated = quantization_noise(&t, variant, true);
    ok(rotated < plain / 4.0,
       "%d columns with outliers: rotated, int8 has a quarter of the noise: %.1e, %.1e", hidden,
       rotated, plain);
    tiny_remove(&t);
    json_decref(variant);
}

int main(void)
{
    json_t *variants = golden_json("llama-variants.json");
    const json_t *grouped = llama_variant(variants, "grouped");
    test_columns(grouped, 512);
    test_columns(grouped, 640); /* 128 * 5: the Hartley transform, too */
    json_decref(variants);
    return done_testing();
}
