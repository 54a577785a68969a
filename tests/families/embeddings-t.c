/*
 * embeddings-t.c - text encoders and decoders give the embeddings of sentence-transformers.
 *
 * The models and texts are those of tests/golden/embedding-variants.json: every pooling, Dense
 * layers, prompts, lower case, and decoders with and without modules.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/affix.h"
#include "runtime/data/encoded_examples.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
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
 * Both sides compute in float and sum in different orders.  Values of embeddings that are not
 * normalized reach 4; differences below 1e-5 were observed.
 */
static const double tolerance = 1e-4;

enum { TEXTS = 5 };

static ft_error err;

/* ---- Checkpoints ---------------------------------------------------------------------------- */

static float value_of(const char *name, int k)
{
    if (strcasestr(name, "norm") != NULL && ft_ends_with(name, ".weight"))
        return 1.0f + (float) ((k + 128) / 4 - 32) / 128.0f;
    return (float) k / (strstr(name, "embed") != NULL ? 128.0f : 256.0f);
}

/* The tensors of a module; `where` is its folder, "" of the Transformer. */
static void add_tensors(tiny *t, const char *variant, const char *where, const json_t *shapes)
{
    const char *name;
    json_t *shape;
    json_object_foreach((json_t *) (uintptr_t) shapes, name, shape)
    {
        char full[128];
        int dim[2] = { (int) json_integer_value(json_array_get(shape, 0)),
                       (int) json_integer_value(json_array_get(shape, 1)) };
        ft_tensor *tensor = tiny_add(t, name, FT_F32, dim[0], dim[1]);
        snprintf(full, sizeof full, "%s%s%s", where, where[0] != '\0' ? "/" : "", name);
        uint64_t h = mixed_hash(variant, full);
        for (size_t i = 0; i < ft_tensor_numel(tensor); i++)
            ((float *) tensor->data)[i] = value_of(name, mixed_number(h, i));
    }
}

/* The weights of a Dense layer are a file in its folder. */
static void write_dense(const tiny *t, const char *variant, const char *where, const json_t *shapes)
{
    tiny *dense = calloc(1, sizeof *dense);
    if (dense == NULL)
        bail_out("no memory");
    if (snprintf(dense->folder, sizeof dense->folder, "%s/%s", t->folder, where) >= TINY_FOLDER)
        bail_out("%s: the name is too long", where);
    add_tensors(dense, variant, where, shapes);
    tiny_write(dense);
    for (size_t i = 0; i < dense->count; i++)
        free(dense->tensor[i].tensor.data);
    free(dense);
}

static void make_checkpoint(tiny *t, const json_t *variant)
{
    const char *title = json_string_value(json_object_get(variant, "name")), *path;
    json_t *shapes = json_object_get(variant, "shapes"), *value;
    memset(t, 0, sizeof *t);
    folder_make(t->folder);
    json_object_foreach(json_object_get(variant, "files"), path, value)
    {
        char *text = json_dumps(value, 0);
        tiny_write_file(t, path, text);
        free(text);
    }
    json_object_foreach(shapes, path, value)
    {
        if (path[0] == '\0')
            add_tensors(t, title, path, value);
        else
            write_dense(t, title, path, value);
    }
    ok(llama_is_same(t, variant), "%s: the generated weights equal those given to the reference",
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
    if (ft_model_open_for_embedding(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* ---- Embeddings ----------------------------------------------------------------------------- */

/* Texts first .. first + count - 1 behind the prompt of that name; NULL: the default one. */
static void encode(ft_dataset *out, const ft_model *model, const json_t *variant, int first,
                   int count, const char *prompt_name)
{
    char *text[TEXTS];
    ft_examples examples;
    ft_encoded_examples encoded;
    ft_tokenizer *tokenizer;
    ft_embedding_prompts prompts;
    ft_example_encoding_options options = { .truncate = true };
    const json_t *texts = json_object_get(variant, "texts");
    for (int i = 0; i < count; i++)
        text[i] = ft_strdup(json_string_value(json_array_get(texts, (size_t) (first + i))));
    if (ft_embedding_prompts_open_model(&prompts, &options.prompt, model, prompt_name, &err) !=
            FT_OK ||
        ft_tokenizer_open_model(&tokenizer, model, &err) != FT_OK ||
        ft_examples_copy(&examples, text, (size_t) count, false, &err) != FT_OK ||
        ft_examples_encode(&encoded, &examples, tokenizer, model, &options, &err) != FT_OK ||
        ft_dataset_from_encodings(out, &encoded, model, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_encoded_examples_fini(&encoded);
    ft_examples_fini(&examples);
    ft_tokenizer_close(tokenizer);
    ft_embedding_prompts_fini(&prompts);
    for (int i = 0; i < count; i++)
        free(text[i]);
}

/* Their embeddings, to be freed. */
static ft_tensor embed(const ft_model *model, const json_t *variant, int first, int count,
                       const char *prompt_name)
{
    ft_dataset dataset;
    ft_session *session;
    ft_tensor out = { 0 };
    encode(&dataset, model, variant, first, count, prompt_name);
    if (ft_session_open(&session, model, &(ft_session_options){ .threads = 2 }, &err) != FT_OK ||
        ft_dataset_set_inputs(&dataset, 0, (size_t) count, session, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "embedding", &out, &err) != FT_OK)
        bail_out("%s", err.text);
    out.data = malloc(ft_tensor_bytes(&out));
    if (out.data == NULL || ft_session_get(session, "embedding", &out, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_session_close(session);
    ft_dataset_fini(&dataset);
    return out;
}

static double difference(const json_t *expected, const ft_tensor *found)
{
    size_t rows = (size_t) found->dim[0], cols = (size_t) found->dim[1];
    double worst = 0.0;
    if (json_array_size(expected) != rows || json_array_size(json_array_get(expected, 0)) != cols)
        return (double) NAN;
    for (size_t i = 0; i < rows * cols; i++) {
        double d =
            fabs((double) ((const float *) found->data)[i] -
                 json_number_value(json_array_get(json_array_get(expected, i / cols), i % cols)));
        worst = d <= worst ? worst : d;
    }
    return worst;
}

static void test_prompt(const ft_model *model, const json_t *variant, const char *prompt_name,
                        const json_t *expected)
{
    const char *title = json_string_value(json_object_get(variant, "name"));
    const char *shown = prompt_name[0] == '\0' ? "the default" : prompt_name;
    const char *name = prompt_name[0] == '\0' ? NULL : prompt_name;
    ft_tensor found = embed(model, variant, 0, TEXTS, name);
    double worst = difference(expected, &found), apart = 0.0;
    near(worst, 0.0, tolerance,
         "%s: embeddings with %s prompt equal those of the reference, with a difference of %.1e",
         title, shown, worst);
    size_t cols = (size_t) found.dim[1];
    int same = 0;
    for (int i = 0; i < TEXTS; i++) {
        ft_tensor alone = embed(model, variant, i, 1, name);
        const float *row = (const float *) found.data + (size_t) i * cols;
        for (size_t k = 0; k < cols; k++)
            apart = fmax(apart, fabs((double) ((float *) alone.data)[k] - (double) row[k]));
        same += memcmp(alone.data, row, cols * sizeof *row) == 0;
        free(alone.data);
    }
    if (model->has_cache)
        is_int(same, TEXTS, "%s: with %s prompt a text alone gives the bits that it has in a batch",
               title, shown);
    else
        near(apart, 0.0, tolerance, "%s: with %s prompt a text alone is embedded as in a batch",
             title, shown);
    free(found.data);
}

static void test_variant(const json_t *variant)
{
    tiny *t = malloc(sizeof *t);
    const char *prompt;
    json_t *expected;
    if (t == NULL)
        bail_out("no memory");
    make_checkpoint(t, variant);
    ft_model *model = open_converted(t);
    json_object_foreach(json_object_get(variant, "outputs"), prompt, expected)
    {
        test_prompt(model, variant, prompt, expected);
    }
    ft_model_close(model);
    tiny_remove(t);
    free(t);
}

int main(void)
{
    json_t *variants = golden_json("embedding-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant)
    {
        test_variant(variant);
    }
    json_decref(variants);
    return done_testing();
}
