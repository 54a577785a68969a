/*
 * heads-t.c - every head of BERT, RoBERTa and DistilBERT gives the outputs of transformers.
 *
 * The models and rows are those of tests/golden/head-variants.json: classes of texts and of tokens,
 * spans, masked language models with and without tied weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/affix.h"
#include "runtime/tensor.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/mixed.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Both sides compute in float and sum in different orders.  Outputs have a spread of up to 4 over
 * two layers; differences below 1e-5 were observed.
 */
static const double tolerance = 1e-4;

enum { ROWS = 3, COLS = 9 };

static ft_error err;

/* ---- Checkpoints ---------------------------------------------------------------------------- */

static float value_of(const char *name, int k)
{
    bool is_norm = strcasestr(name, "norm") != NULL && ft_ends_with(name, ".weight");
    if (is_norm)
        return 1.0f + (float) ((k + 128) / 4 - 32) / 128.0f;
    return (float) k / (strstr(name, "embeddings") != NULL ? 128.0f : 256.0f);
}

static void add_tensor(tiny *t, const char *variant, const char *name, const json_t *shape)
{
    int dim[2] = { (int) json_integer_value(json_array_get(shape, 0)),
                   (int) json_integer_value(json_array_get(shape, 1)) };
    ft_tensor *tensor = tiny_add(t, name, FT_F32, dim[0], dim[1]);
    uint64_t h = mixed_hash(variant, name);
    for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
        ((float *) tensor->data)[i] = value_of(name, mixed_number(h, i));
}

static void make_checkpoint(tiny *t, const json_t *variant)
{
    const char *title = json_string_value(json_object_get(variant, "name")), *name;
    json_t *shape;
    memset(t, 0, sizeof *t);
    folder_make(t->folder);
    char *text = json_dumps(json_object_get(variant, "config"), 0);
    tiny_write_file(t, "config.json", text);
    free(text);
    json_object_foreach(json_object_get(variant, "shapes"), name, shape)
    {
        add_tensor(t, title, name, shape);
    }
    ok(llama_is_same(t, variant), "%s: the generated weights equal those given to transformers",
       title);
    tiny_write(t);
}

static ft_model *open_converted(const tiny *t)
{
    char path[128];
    ft_model *model;
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    ft_conversion *conversion = converted_open(t, &(ft_convert_options){ 0 });
    if (conversion == NULL || converted_write(conversion, path) != FT_OK)
        bail_out("%s", converted_problem(0));
    ft_conversion_close(conversion);
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* ---- Outputs -------------------------------------------------------------------------------- */

/* Rows first ... first + count - 1 of the variant, and an output of them, to be freed. */
static ft_tensor run(const ft_model *model, const json_t *variant, int first, int count,
                     const char *name)
{
    int32_t ids[ROWS * COLS], mask[ROWS * COLS];
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { count, COLS } }, out = { 0 };
    ft_session *session;
    for (int i = 0; i < count * COLS; i++) {
        size_t row = (size_t) (first + i / COLS);
        const json_t *of = json_array_get(json_object_get(variant, "ids"), row);
        ids[i] = (int32_t) json_integer_value(json_array_get(of, (size_t) (i % COLS)));
        mask[i] =
            i % COLS < json_integer_value(json_array_get(json_object_get(variant, "lengths"), row));
    }
    if (ft_session_open(&session, model, &(ft_session_options){ .threads = 2 }, &err) != FT_OK)
        bail_out("%s", err.text);
    input.data = ids;
    if (ft_session_set(session, "input_ids", &input, &err) != FT_OK)
        bail_out("%s", err.text);
    input.data = mask;
    if (ft_session_set(session, "attention_mask", &input, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, name, &out, &err) != FT_OK)
        bail_out("%s", err.text);
    out.data = malloc(ft_tensor_bytes(&out));
    if (out.data == NULL || ft_session_get(session, name, &out, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_session_close(session);
    return out;
}

/* Whether element i of the output belongs to a token, or to a whole row. */
static bool is_token(const json_t *variant, size_t i, size_t each)
{
    size_t row = i / each, position = i % each / (each / COLS);
    return (json_int_t) position <
           json_integer_value(json_array_get(json_object_get(variant, "lengths"), row));
}

static double difference(const json_t *variant, const json_t *expected, const ft_tensor *found,
                         bool per_token, bool *padding_is_zero)
{
    size_t size = ft_tensor_numel(found), each = size / ROWS;
    double worst = json_array_size(expected) == size ? 0.0 : (double) NAN;
    *padding_is_zero = true;
    for (size_t i = 0; i < size; i++) {
        double x = (double) ((const float *) found->data)[i];
        if (per_token && !is_token(variant, i, each)) {
            *padding_is_zero &= x == 0.0;
            continue;
        }
        double d = fabs(x - json_number_value(json_array_get(expected, i)));
        worst = d <= worst ? worst : d;
    }
    return worst;
}

static void test_output(const ft_model *model, const json_t *variant, const char *name,
                        const json_t *expected)
{
    const char *title = json_string_value(json_object_get(variant, "name"));
    ft_tensor found = run(model, variant, 0, ROWS, name);
    bool per_token = found.ndim == 3 || name[0] != 'l', padding_is_zero;
    double worst = difference(variant, expected, &found, per_token, &padding_is_zero);
    near(worst, 0.0, tolerance, "%s: %s equals that of transformers, with a difference of %.1e",
         title, name, worst);
    if (per_token)
        ok(padding_is_zero, "%s: %s is zero where there is padding", title, name);
    size_t each = ft_tensor_numel(&found) / ROWS;
    for (int i = 0; i < ROWS; i++) {
        ft_tensor alone = run(model, variant, i, 1, name);
        double d = 0.0;
        for (size_t k = 0; k < each; k++)
            d = fmax(d, fabs((double) ((float *) alone.data)[k] -
                             (double) ((float *) found.data)[(size_t) i * each + k]));
        near(d, 0.0, tolerance, "%s: row %d alone gives the same %s as in a batch", title, i, name);
        free(alone.data);
    }
    free(found.data);
}

static void test_variant(const json_t *variant)
{
    tiny t;
    const char *output;
    json_t *expected;
    make_checkpoint(&t, variant);
    ft_model *model = open_converted(&t);
    json_object_foreach(json_object_get(variant, "outputs"), output, expected)
    {
        test_output(model, variant, output, expected);
    }
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("head-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant)
    {
        test_variant(variant);
    }
    json_decref(variants);
    return done_testing();
}
