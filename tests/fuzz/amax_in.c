/*
 * amax_in.c - fuzz target: arbitrary bytes as the ranges of a small BERT.
 *
 * Bytes that are a safetensors file are read as the quantizers of a checkpoint, others as amax.tsv
 * or as FasterTransformer's amaxList. An accepted file gives every calibration point a valid range.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/amax_in.h"

#include "calibrate/amax_in/quantizers.h"
#include "kernels/quant.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "tests/lib/models/tiny.h"
#include "tests/lib/models/converted.h"

#include <math.h>
#include <string.h>

static ft_model *model;

static bool is_quantized(const void *user, const char *point)
{
    (void) user;
    return strstr(point, "probs") == NULL && strcmp(point, "layer.1.ffn.norm") != 0;
}

/* The model stays open for all inputs; its file is gone by then. */
static void open_model(void)
{
    tiny t;
    char path[128];
    const ft_quant_config observe = { .mode = FT_MODE_OBSERVE };
    tiny_make_classifier(&t);
    tiny_configure(&t, "{\"intermediate_size\": 32}");
    for (int layer = 0; layer < 2; layer++) {
        char name[96];
        snprintf(name, sizeof name, "bert.encoder.layer.%d.intermediate.dense.weight", layer);
        tiny_drop(&t, name);
        tiny_add(&t, name, FT_F32, 32, 8);
        snprintf(name, sizeof name, "bert.encoder.layer.%d.intermediate.dense.bias", layer);
        tiny_drop(&t, name);
        tiny_add(&t, name, FT_F32, 32, 0);
        snprintf(name, sizeof name, "bert.encoder.layer.%d.output.dense.weight", layer);
        tiny_drop(&t, name);
        tiny_add(&t, name, FT_F32, 8, 32);
    }
    ft_artifact_close(converted(&t, &(ft_convert_options){ 0 }));
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    require(ft_model_open_with_config(&model, path, NULL, &observe, NULL) == FT_OK);
    tiny_remove(&t);
}

static void check(const ft_amax_table *table)
{
    size_t points = 0;
    for (int i = 0; i < model->graph.nvalue; i++)
        if (model->graph.value[i].point) {
            const ft_amax_entry *entry = ft_amax_table_find(table, model->graph.value[i].name);
            require(entry != NULL && isnormal(ft_scale_from_amax(entry->amax)));
            points++;
        }
    require(points == table->count);
}

static ft_status read_quantizers(const ft_amax_input *input, const ft_safetensors *tensors,
                                 ft_amax_table **table, ft_error *err)
{
    ft_given_ranges ranges;
    ft_status status = ft_given_ranges_init(&ranges, "fuzz", input, err);
    if (status == FT_OK)
        status = ft_quantizers_read(&ranges, tensors, err);
    if (status == FT_OK)
        status = ft_given_ranges_finish(&ranges, table, err);
    ft_given_ranges_fini(&ranges);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ft_recipe all_w8a8;
    static ft_messages notes;
    ft_quantized_weight *quantized;
    ft_amax_table *table = NULL;
    ft_safetensors *tensors;
    size_t count;
    ft_error err = { .code = FT_OK };
    if (model == NULL)
        open_model();
    require(ft_quantized_weights_new(&quantized, &count, model, &all_w8a8, NULL) == FT_OK);
    memset(&notes, 0, sizeof notes);
    const ft_amax_input input = { model, quantized, count, is_quantized, NULL, &notes };
    ft_status status = ft_safetensors_parse(&tensors, "fuzz", data, size, NULL) == FT_OK
                           ? read_quantizers(&input, tensors, &table, &err)
                           : ft_amax_input_parse(&table, "fuzz", data, size, &input, &err);
    require((status == FT_OK) == (table != NULL) && (status == FT_OK || err.text[0] != '\0'));
    if (table != NULL)
        check(table);
    for (size_t i = 0; status == FT_OK && i < count; i++)
        for (size_t row = 0; quantized[i].scale != NULL && row < quantized[i].weights.rows; row++)
            require(isnormal(quantized[i].scale[row]));
    ft_safetensors_close(tensors);
    ft_amax_table_free(table);
    ft_quantized_weights_free(quantized, count);
    return 0;
}

/* Keeps the length of a list, and the header of a safetensors file, in half of all cases. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t state = seed;
    if (size > 5 && memcmp(data, "name\t", 5) == 0)
        return mutate_text(data, size, room, &state);
    if (size == 0 || mutate_below(&state, 2) == 0)
        return mutate_bytes(data, size, room, &state);
    data[mutate_below(&state, size)] ^= (uint8_t) (1u << mutate_below(&state, 8));
    return size;
}
