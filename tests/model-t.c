/*
 * model-t.c - opening artifacts: what is used, and what is refused before anything runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model.h"
#include "runtime/plan.h"
#include "tests/lib/bert_file.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static char folder[FOLDER_PATH], path[FOLDER_PATH + 16];
static test_bert floats, codes;

static void write_file(const bert_file *what)
{
    bert_file_write(what->int8 ? &codes : &floats, what, path);
}

static ft_model *open_model(const ft_model_options *options)
{
    ft_model *model;
    ft_error err;
    if (ft_model_open(&model, path, options, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* ---- What is used ------------------------------------------------------------------------- */

/* Whether weight data and scales lie in the map of the artifact. */
static bool in_place(const ft_model *model)
{
    for (int i = 0; i < model->nweight; i++) {
        const ft_artifact_tensor *t = ft_artifact_find(model->artifact, model->weight[i].name);
        if (t == NULL || model->weight[i].data != t->data || model->weight[i].scale != t->scale)
            return false;
    }
    return true;
}

static void test_float(void)
{
    write_file(&(bert_file){ .int8 = false });
    ft_model *model = open_model(NULL);
    ft_model_info info = ft_model_get_info(model);
    is_str(info.family, "bert", "a float artifact opens");
    is_str(info.precision, "float", "and says what it is");
    ok(info.layers == 2 && info.hidden == 12 && info.heads == 2 && info.vocabulary == 50 &&
           info.max_positions == 300 && info.labels == 3 && info.embedding,
       "its sizes are those of its configuration");
    ok(in_place(model), "its weights are used where they lie");
    is_str(ft_model_label(model, 1), "yes", "classes have the checkpoint's names");
    ok(ft_model_label(model, 7) == NULL && ft_model_label(model, -1) == NULL,
       "those without a name have none");
    is_int(model->plan.nop, 25, "its plan is fused");
    ft_model_close(model);

    model = open_model(&(ft_model_options){ .no_fuse = true });
    is_int(model->plan.nop, 32, "unless it may not be");
    ft_model_close(model);
    ft_model_close(NULL);
}

static void test_int8(void)
{
    write_file(&(bert_file){ .int8 = true });
    ft_model *model = open_model(NULL);
    is_str(ft_model_get_info(model).precision, "int8", "an int8 artifact opens");
    ok(in_place(model), "its codes and scales are used where they lie");
    int wrong = 0, points = 0;
    for (int i = 0; i < model->graph.nvalue; i++) {
        int value = ft_plan_find(&model->plan, model->graph.value[i].name);
        bool point = model->graph.value[i].point;
        float scale = model->plan.value[value].scale;
        points += point && scale > 0.0f;
        wrong += point && scale > 0.0f && scale != bert_file_amax(i) / 127.0f;
    }
    ok(points == 16 && wrong == 0, "each point has the scale of its amax");
    ft_model_close(model);

    model = open_model(&(ft_model_options){ .fake = true });
    ok(model->purpose.mode == FT_MODE_FAKE && model->weight[5].dtype == FT_F32 &&
           model->weight[5].scale != NULL,
       "it also runs with codes held in float");
    ft_model_close(model);

    write_file(&(bert_file){ .int8 = true, .residual = "int8" });
    model = open_model(NULL);
    ok(model->purpose.int8_residual, "the recipe decides on the residual stream");
    ft_model_close(model);
}

/* ---- What is refused ---------------------------------------------------------------------- */

static void refused(const bert_file *what, const ft_model_options *options, ft_status status,
                    const char *text, const char *sentence)
{
    ft_model *model = (ft_model *) folder;
    ft_error err = { 0 };
    write_file(what);
    ft_status found = ft_model_open(&model, path, options, &err);
    has(found == status && model == NULL ? err.text : "another status", text, "%s", sentence);
    if (found == FT_OK)
        ft_model_close(model);
}

static void test_weights(void)
{
    refused(&(bert_file){ .drop = "layer.1.ffn.up.bias" }, NULL, FT_EFORMAT,
            "layer.1.ffn.up.bias: missing", "a missing weight is refused");
    refused(&(bert_file){ .rename = "layer.1.ffn.up.bias" }, NULL, FT_EFORMAT,
            "model.ft: layer.1.ffn.up.bias: missing", "and named, where another one is too many");
    refused(&(bert_file){ .recast = "embed.norm.weight" }, NULL, FT_EFORMAT,
            "model.ft: embed.norm.weight: stored as F16 row, which no vector weight is",
            "a vector in half precision is refused");
    refused(&(bert_file){ .int8 = true, .recast = "layer.0.attn.q.bias" }, NULL, FT_EFORMAT,
            "layer.0.attn.q.bias: stored as F16", "in an int8 artifact too");
    refused(&(bert_file){ .reshape = "classifier.weight" }, NULL, FT_ESHAPE,
            "model.ft: classifier.weight: shape [2, 12], expected [3, 12]",
            "a weight of another shape is refused");
    refused(&(bert_file){ .recall = "pooler.weight" }, NULL, FT_EFORMAT,
            "model.ft: pooler.weight: role sink, expected dense", "a weight of another role too");
    refused(&(bert_file){ .family = "gpt" }, NULL, FT_EUNSUPPORTED,
            "model.ft: family gpt is unknown to this version", "and another family");
}

static void test_points(void)
{
    refused(&(bert_file){ .int8 = true, .unmeasured = "layer.0.attn.probs" }, NULL, FT_EFORMAT,
            "model.ft: layer.0.attn.probs: no amax for this point",
            "a point without amax is refused");
    refused(&(bert_file){ .int8 = true, .misname = "layer.1.ffn.act" }, NULL, FT_EFORMAT,
            "model.ft: layer.1.ffn.act: no amax for this point", "under another name too");
    refused(&(bert_file){ .int8 = true, .residual = "half" }, NULL, FT_EFORMAT,
            "model.ft: recipe: residual is neither float nor int8", "and an unknown recipe");
}

static void test_purposes(void)
{
    refused(&(bert_file){ .int8 = false }, &(ft_model_options){ .fake = true }, FT_EARG,
            "model.ft: is a float artifact: there are no codes to fake",
            "a float artifact has no codes to fake");
    refused(&(bert_file){ .int8 = false }, &(ft_model_options){ .device = "tpu" }, FT_EARG,
            "device tpu: unknown, expected \"cpu\" or \"cuda:N\"", "an unknown device is refused");
    refused(&(bert_file){ .int8 = false }, &(ft_model_options){ .device = "cpu:1" }, FT_EDEVICE,
            "device cpu:1: there is one cpu device", "and a second CPU");
    refused(&(bert_file){ .int8 = false }, &(ft_model_options){ .device = "cuda:x" }, FT_EARG,
            "device cuda:x: unknown, expected \"cpu\" or \"cuda:N\"", "and a device of no number");

    ft_model *model;
    ft_error err;
    write_file(&(bert_file){ .int8 = true });
    is_int(ft_model_open_for(&model, path, NULL, &(ft_purpose){ .mode = FT_MODE_OBSERVE }, &err),
           FT_EARG, "only a float artifact can be observed");
    has(err.text, "model.ft: is an int8 artifact, expected a float one", "which is said");
    is_int(ft_model_open(&model, "/nowhere/model.ft", NULL, &err), FT_EIO,
           "a file that is not there is an error");
    has(err.text, "/nowhere/model.ft: No such file", "of the system");
}

int main(void)
{
    ft_config config = test_bert_config(12, 2, 20);
    test_bert_make(&floats, &config, FT_MODE_FLOAT, 1);
    test_bert_make(&codes, &config, FT_MODE_INT8, 1);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    test_float();
    test_int8();
    test_weights();
    test_points();
    test_purposes();
    folder_remove(folder);
    test_bert_free(&floats);
    test_bert_free(&codes);
    return done_testing();
}
