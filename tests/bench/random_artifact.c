/*
 * random_artifact.c - writes an int8 BERT with random weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/random_artifact.h"

#include "runtime/container/artifact.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* Random int8 values, or floats between -0.5 and 0.5. */
static ft_status produce(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    (void) err;
    static uint32_t state = 1;
    const ft_dtype *dtype = user;
    size_t step = *dtype == FT_I8 ? 1 : sizeof(float);
    for (size_t i = 0; i < bytes; i += step) {
        state = 1664525u * state + 1013904223u;
        if (*dtype == FT_I8)
            ((int8_t *) buffer)[i] = (int8_t) ((int) ((state >> 16) % 255) - 127);
        else
            ((float *) buffer)[i / step] = (float) (state >> 8) / 16777216.0f - 0.5f;
    }
    *produced = bytes;
    return FT_OK;
}

static ft_status add_weights(ft_artifact_writer *writer, const ft_weight_spec *spec, size_t count,
                             const float *scale, ft_error *err)
{
    static ft_dtype real = FT_F32, code = FT_I8;
    for (size_t i = 0; i < count; i++) {
        bool linear = spec[i].role == FT_ROLE_LINEAR;
        ft_artifact_tensor tensor = {
            .name = spec[i].name,
            .role = ft_role_name(spec[i].role),
            .dtype = linear ? FT_I8 : FT_F32,
            .layout = linear ? FT_COL4_4R2_8C : FT_ROW,
            .ndim = spec[i].ndim,
            .scale = linear ? scale : NULL,
        };
        memcpy(tensor.dim, spec[i].dim, sizeof spec[i].dim);
        FT_TRY(ft_artifact_add_tensor(writer, &tensor, produce, linear ? &code : &real, err));
    }
    return FT_OK;
}

/* The points of the family's graph, all with one range; free *text with free(). */
static ft_status write_ranges(const ft_config *config, const ft_weight_spec *spec, size_t count,
                              char **text, size_t *bytes, ft_error *err)
{
    ft_weight *weight = ft_calloc(count, sizeof *weight);
    bool *quantizable = ft_calloc(count, sizeof *quantizable);
    ft_amax_table *amax = ft_amax_table_new();
    ft_graph graph = { 0 };
    ft_status status = FT_OK;
    if (weight == NULL || quantizable == NULL || amax == NULL)
        status = ft_fail(err, FT_ENOMEM, "out of memory: %zu weights", count);
    for (size_t i = 0; i < count && status == FT_OK; i++) {
        memcpy(weight[i].name, spec[i].name, sizeof weight[i].name);
        weight[i].rows = spec[i].ndim == 2 ? (size_t) spec[i].dim[0] : 1;
        weight[i].cols = (size_t) spec[i].dim[spec[i].ndim - 1];
        quantizable[i] = spec[i].role == FT_ROLE_LINEAR;
    }
    if (status == FT_OK) {
        ft_graph_init(&graph, weight, quantizable, (int) count);
        ft_family_find("bert")->build(&graph, config);
        status = ft_graph_finish(&graph, err);
    }
    for (int i = 0; i < graph.plan.nvalue && status == FT_OK; i++) {
        ft_amax_entry entry = { .name = graph.plan.value[i].name, .amax = 4, .method = "max" };
        if (graph.plan.value[i].point)
            status = ft_amax_table_add(amax, &entry, err);
    }
    if (status == FT_OK)
        status = ft_amax_table_format(amax, text, bytes, err);
    ft_plan_fini(&graph.plan);
    ft_amax_table_free(amax);
    free(weight);
    free(quantizable);
    return status;
}

static ft_status write_with(ft_artifact_writer *writer, const ft_config *config,
                            const ft_weight_spec *spec, size_t count, ft_error *err)
{
    size_t bytes, widest = (size_t) (config->ffn > config->hidden ? config->ffn : config->hidden);
    float *scale = ft_calloc(widest, sizeof *scale);
    char *text = NULL;
    ft_artifact_header head = { .state = FT_ARTIFACT_INT8,
                                .family = "bert",
                                .tool = "bench",
                                .config = ft_config_to_json(config),
                                .recipe = json_pack("{ss}", "residual", "float") };
    ft_status status = FT_OK;
    if (scale == NULL)
        status = ft_fail(err, FT_ENOMEM, "out of memory: %zu scales", widest);
    for (size_t i = 0; i < widest && status == FT_OK; i++)
        scale[i] = 0.001f;
    if (status == FT_OK)
        status = write_ranges(config, spec, count, &text, &bytes, err);
    if (status == FT_OK)
        status = add_weights(writer, spec, count, scale, err);
    if (status == FT_OK)
        status = ft_artifact_add_memory(writer, "amax.tsv", text, bytes, err);
    if (status == FT_OK)
        status = ft_artifact_finish(writer, &head, err);
    json_decref(head.config);
    json_decref(head.recipe);
    free(scale);
    free(text);
    return status;
}

ft_status random_artifact_write(const char *path, const ft_config *config, ft_error *err)
{
    ft_artifact_writer *writer;
    ft_weight_spec *spec;
    size_t count;
    FT_TRY(ft_family_weights(ft_family_find("bert"), NULL, config, &spec, &count, err));
    ft_status status = ft_artifact_create(&writer, path, false, err);
    if (status == FT_OK) {
        status = write_with(writer, config, spec, count, err);
        ft_artifact_discard(writer);
    }
    free(spec);
    return status;
}
