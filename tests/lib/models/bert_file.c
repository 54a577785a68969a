/*
 * bert_file.c - writes the BERT of bert.h as an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/bert_file.h"

#include "runtime/container/artifact.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

/* The position of a producer in its data. */
typedef struct source {
    const char *next;
} source;

static ft_status produce(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    source *from = user;
    (void) err;
    memcpy(buffer, from->next, bytes);
    from->next += bytes;
    *produced = bytes;
    return FT_OK;
}

static ft_status add_weights(ft_artifact_writer *writer, const test_bert *model, source *from,
                             ft_error *err)
{
    ft_weight_spec *spec;
    size_t count;
    FT_TRY(ft_family_weights(ft_family_find("bert"), NULL, &model->config, &spec, &count, err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < count && status == FT_OK; i++) {
        const ft_weight *weight = &model->weight[i];
        from[i].next = weight->data;
        status = ft_artifact_add_tensor(writer,
                                        &(ft_artifact_tensor){
                                            .name = weight->name,
                                            .role = ft_role_name(spec[i].role),
                                            .dtype = weight->dtype,
                                            .layout = weight->layout,
                                            .ndim = spec[i].ndim,
                                            .dim = { spec[i].dim[0], spec[i].dim[1] },
                                            .scale = weight->scale,
                                        },
                                        produce, &from[i], err);
    }
    free(spec);
    return status;
}

float bert_file_amax(int value)
{
    return (float) (value + 1) / 8.0f;
}

static ft_status add_amax(ft_artifact_writer *writer, const test_bert *model, char **text,
                          ft_error *err)
{
    size_t bytes = 0;
    ft_status status = FT_OK;
    ft_amax_table *list = ft_amax_table_new();
    for (int i = 0; i < model->graph.nvalue && status == FT_OK; i++) {
        ft_value *value = &model->graph.value[i];
        ft_amax_entry entry = { .name = value->name, .amax = bert_file_amax(i), .method = "max" };
        if (value->point)
            status = ft_amax_table_add(list, &entry, err);
    }
    if (status == FT_OK)
        status = ft_amax_table_format(list, text, &bytes, err);
    ft_amax_table_free(list);
    FT_TRY(status);
    return ft_artifact_add_memory(writer, "amax.tsv", *text, bytes, err);
}

static bool is_int8(const test_bert *model)
{
    for (int i = 0; i < model->nweight; i++)
        if (model->weight[i].dtype == FT_I8)
            return true;
    return false;
}

static ft_status write_with(ft_artifact_writer *writer, const test_bert *model,
                            const char *residual, ft_error *err)
{
    static const char labels[] = "{\"id2label\": {\"0\": \"no\", \"1\": \"yes\"}}";
    char *amax = NULL;
    source *from = ft_calloc((size_t) model->nweight, sizeof *from);
    ft_artifact_header head = {
        .state = is_int8(model) ? FT_ARTIFACT_INT8 : FT_ARTIFACT_FLOAT,
        .family = "bert",
        .tool = "test",
        .config = ft_config_to_json(&model->config),
        .recipe = is_int8(model) ? json_pack("{ss}", "residual", residual) : NULL,
    };
    ft_status status = from == NULL ? FT_ENOMEM : add_weights(writer, model, from, err);
    if (status == FT_OK)
        status = ft_artifact_add_memory(writer, "config.json", labels, strlen(labels), err);
    if (status == FT_OK && is_int8(model))
        status = add_amax(writer, model, &amax, err);
    if (status == FT_OK)
        status = ft_artifact_finish(writer, &head, err);
    json_decref(head.config);
    json_decref(head.recipe);
    free(amax);
    free(from);
    return status;
}

void bert_file_write(const test_bert *model, const char *residual, const char *path)
{
    ft_error err = { 0 };
    ft_artifact_writer *writer;
    ft_status status = ft_artifact_create(&writer, path, true, &err);
    if (status == FT_OK) {
        status = write_with(writer, model, residual, &err);
        ft_artifact_discard(writer);
    }
    if (status != FT_OK)
        bail_out("%s", err.text);
}
