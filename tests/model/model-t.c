/*
 * model-t.c - an open model: its plan, its weights, its scales.
 *
 * loader-t.c tests refused artifacts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/bert_file.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static char folder[FOLDER_PATH], path[FOLDER_PATH + 16];
static test_bert floats, quantized;

static ft_model *open_model(const ft_model_options *options)
{
    ft_model *model;
    ft_error err;
    if (ft_model_open(&model, path, options, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* Whether weight data and scales point into the mapped artifact. */
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
    bert_file_write(&floats, "float", path);
    ft_model *model = open_model(NULL);
    ft_model_info info = ft_model_get_info(model);
    is_str(info.family, "bert", "ft_model_open() opens a float artifact");
    is_str(info.precision, "float",
           "ft_model_get_info() reports the precision of a float artifact");
    ok(info.layers == 2 && info.hidden == 12 && info.heads == 2 && info.vocabulary == 50 &&
           info.max_positions == 300 && info.labels == 3 && info.embedding,
       "ft_model_get_info() reports the sizes of the configuration");
    ok(in_place(model), "float weights are used in place in the mapped file");
    is_str(ft_model_label(model, 1), "yes",
           "ft_model_label() returns the label names of the checkpoint");
    ok(ft_model_label(model, 7) == NULL && ft_model_label(model, -1) == NULL,
       "ft_model_label() returns NULL for an index without a label");
    is_int(model->plan.nop, 25, "the plan of a float model is fused by default");
    ft_model_close(model);

    model = open_model(&(ft_model_options){ .no_fuse = true });
    is_int(model->plan.nop, 32, "the option no_fuse gives an unfused plan");
    ft_model_close(model);
    ft_model_close(NULL);
}

static void test_int8(void)
{
    bert_file_write(&quantized, "float", path);
    ft_model *model = open_model(NULL);
    is_str(ft_model_get_info(model).precision, "int8", "ft_model_open() opens an int8 artifact");
    ok(in_place(model), "int8 weights and their scales are used in place in the mapped file");
    int wrong = 0, points = 0;
    for (int i = 0; i < model->graph.nvalue; i++) {
        int value = ft_plan_find(&model->plan, model->graph.value[i].name);
        bool point = model->graph.value[i].point;
        float scale = model->plan.value[value].scale;
        points += point && scale > 0.0f;
        wrong += point && scale > 0.0f && scale != bert_file_amax(i) / 127.0f;
    }
    ok(points == 14 && wrong == 0, "each calibration point with memory has the scale of its amax");
    ft_model_close(model);

    model = open_model(&(ft_model_options){ .fake = true });
    ok(model->quant.mode == FT_MODE_FAKE_QUANTIZE && model->weight[5].dtype == FT_F32 &&
           model->weight[5].scale != NULL,
       "the option fake opens an int8 artifact with quantized values in float32");
    ft_model_close(model);

    bert_file_write(&quantized, "int8", path);
    model = open_model(NULL);
    ok(model->quant.int8_residual, "the recipe of an artifact selects the int8 residual stream");
    ft_model_close(model);
}

/* The dtype of the last hidden state of a fake-quantized plan with one point of this amax. */
static ft_dtype dtype_of_reals(float largest)
{
    ft_amax_table *list = ft_amax_table_new();
    ft_model *model;
    ft_error err;
    ft_status status = FT_OK;
    for (int i = 0, first = 1; i < floats.graph.nvalue && status == FT_OK; i++)
        if (floats.graph.value[i].point) {
            float amax = first ? largest : bert_file_amax(i);
            status = ft_amax_table_add(
                list, &(ft_amax_entry){ floats.graph.value[i].name, amax, "max", 0, 0 }, &err);
            first = 0;
        }
    const ft_quant_config quant = { .mode = FT_MODE_FAKE_QUANTIZE, .amax = list };
    if (status != FT_OK || ft_model_open_with_config(&model, path, NULL, &quant, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_dtype dtype = model->plan.value[model->plan.output[0].value].dtype;
    ft_model_close(model);
    ft_amax_table_free(list);
    return dtype;
}

static void test_f16(void)
{
    bert_file_write(&floats, "float", path);
    is_int(dtype_of_reals(1.0f), FT_F16, "float values of a quantized plan are float16");
    is_int(dtype_of_reals(4096.0f), FT_F16,
           "float values of a quantized plan are float16 up to an amax of 4096");
    is_int(dtype_of_reals(4097.0f), FT_F32,
           "float values of a quantized plan are float32 when an amax exceeds 4096");
}

int main(void)
{
    ft_config config = test_bert_config(12, 2, 20);
    test_bert_make(&floats, &config, FT_MODE_FLOAT, 1);
    test_bert_make(&quantized, &config, FT_MODE_INT8, 1);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    test_float();
    test_int8();
    test_f16();
    folder_remove(folder);
    test_bert_free(&floats);
    test_bert_free(&quantized);
    return done_testing();
}
