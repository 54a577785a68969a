/*
 * validate.c - consistency of state, recipe, family, weights and calibrated ranges of an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/validate.h"

#include "kernels/quant.h"
#include "runtime/container/artifact_private.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <string.h>

/* ---- Family ------------------------------------------------------------------------------- */

ft_status ft_validate_family(const ft_model *model, ft_error *err)
{
    const ft_config *config = &model->config;
    const char *foreign =
        ft_config_is_decoder(config) && config->labels > 0 ? "labels"
        : ft_config_is_encoder_decoder(config) && config->embedding != FT_EMBEDDING_NONE
            ? "an embedding"
            : NULL;
    if (foreign != NULL)
        return ft_fail(err, FT_EFORMAT, "%s: config: %s with %s, which family %s does not support",
                       model->path, ft_kind_name(config->kind), foreign, model->family->name);
    return FT_OK;
}

/* ---- Recipe ------------------------------------------------------------------------------- */

static const json_t *recipe_of(const ft_model *model)
{
    return ft_artifact_get_header(model->artifact)->recipe;
}

/* Read a recipe key with two allowed values; *is_second tells which. */
static ft_status read_choice(const ft_model *model, const char *key, const char *first,
                             const char *second, bool *is_second, ft_error *err)
{
    const char *found = json_string_value(json_object_get(recipe_of(model), key));
    *is_second = found != NULL && strcmp(found, second) == 0;
    if (*is_second || (found != NULL && strcmp(found, first) == 0))
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: recipe: %s is neither %s nor %s", model->path, key, first,
                   second);
}

/* "float" if the recipe has no such key; NULL if the value is not a string. */
static const char *head_storage(const ft_model *model)
{
    const json_t *head = json_object_get(recipe_of(model), "head");
    return head == NULL ? "float" : json_string_value(head);
}

static ft_status read_head(const ft_model *model, ft_quant_config *quant, ft_error *err)
{
    const char *head = head_storage(model);
    quant->quantized_head =
        head != NULL && (strcmp(head, "int8") == 0 || strcmp(head, "blocks") == 0);
    if (!quant->quantized_head && (head == NULL || strcmp(head, "float") != 0))
        return ft_fail(err, FT_EFORMAT, "%s: recipe: head is neither float, int8 nor blocks",
                       model->path);
    if (quant->quantized_head && !ft_config_is_decoder(&model->config))
        return ft_fail(err, FT_EFORMAT,
                       "%s: recipe: head is %s, but family %s has no LM head to quantize",
                       model->path, head, model->family->name);
    return FT_OK;
}

/* Without the key, activations are int8 per tensor. */
static ft_status read_activations(const ft_model *model, ft_quant_config *quant, ft_error *err)
{
    const json_t *json = json_object_get(recipe_of(model), "activations");
    const char *found = json == NULL ? FT_INT8_PER_TENSOR : json_string_value(json);
    bool per_tensor = found != NULL && strcmp(found, FT_INT8_PER_TENSOR) == 0;
    bool mixed = found != NULL && strcmp(found, FT_INT8_PER_TENSOR_OR_TOKEN) == 0;
    quant->dynamic = found != NULL && strcmp(found, FT_INT8_PER_TOKEN) == 0;
    if (!per_tensor && !mixed && !quant->dynamic)
        return ft_fail(err, FT_EFORMAT,
                       "%s: recipe: activations is none of " FT_INT8_PER_TENSOR
                       ", " FT_INT8_PER_TOKEN " and " FT_INT8_PER_TENSOR_OR_TOKEN,
                       model->path);
    if (!per_tensor && quant->int8_residual)
        return ft_fail(err, FT_EFORMAT, "%s: recipe: int8 residuals need calibrated ranges",
                       model->path);
    return FT_OK;
}

ft_status ft_validate_recipe(const ft_model *model, ft_quant_config *quant, ft_error *err)
{
    const ft_artifact_header *head = ft_artifact_get_header(model->artifact);
    if (head->state == FT_ARTIFACT_FLOAT)
        return FT_OK;
    FT_TRY(read_head(model, quant, err));
    if (head->state == FT_ARTIFACT_GROUPWISE)
        return FT_OK;
    FT_TRY(read_choice(model, "residual", "float", "int8", &quant->int8_residual, err));
    quant->amax = ft_artifact_amax(model->artifact);
    return read_activations(model, quant, err);
}

/* ---- Head --------------------------------------------------------------------------------- */

/* The storage of a matrix in the recipe's words: "float", "int8" or "blocks". */
static const char *storage_name(const ft_artifact_tensor *tensor)
{
    return tensor->dtype == FT_I8 ? "int8" : tensor->layout == FT_PANEL32 ? "blocks" : "float";
}

ft_status ft_validate_head(const ft_model *model, ft_error *err)
{
    const char *expected = head_storage(model);
    const ft_artifact_tensor *head = ft_artifact_find(model->artifact, FT_HEAD_WEIGHT);
    if (ft_artifact_get_header(model->artifact)->state == FT_ARTIFACT_FLOAT || expected == NULL)
        return FT_OK;
    const char *found = head != NULL ? storage_name(head) : "float";
    if (strcmp(found, expected) == 0)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: recipe: head is %s, but " FT_HEAD_WEIGHT " is %s",
                   model->path, expected, head != NULL ? found : "not stored");
}

/* ---- Ranges ------------------------------------------------------------------------------- */

/* Points that are quantized per token keep the scale 0. */
static ft_status find_scales(const ft_model *model, float *scale, size_t *points, ft_error *err)
{
    *points = 0;
    for (int i = 0; i < model->graph.nvalue; i++) {
        const ft_value *value = &model->graph.value[i];
        if (!value->point)
            continue;
        const ft_amax_entry *entry = ft_amax_table_find(model->quant.amax, value->name);
        if (entry == NULL)
            return ft_fail(err, FT_EFORMAT, "%s: %s: no amax for this calibration point",
                           model->path, value->name);
        if (!ft_amax_entry_is_per_token(entry))
            scale[i] = ft_scale_from_amax(entry->amax);
        (*points)++;
    }
    return FT_OK;
}

/* Report a range without a calibration point. */
static ft_status fail_unknown_range(const ft_model *model, ft_error *err)
{
    const ft_amax_table *amax = model->quant.amax;
    for (size_t i = 0; i < amax->count; i++) {
        int value = ft_plan_find(&model->graph, amax->entry[i].name);
        if (value < 0 || !model->graph.value[value].point)
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: has an amax, but is not a calibration point of the model",
                           model->path, amax->entry[i].name);
    }
    return FT_OK;
}

/* Else the caller's table may have ranges of points that the configuration keeps float. */
static bool is_quantized_artifact(const ft_model *model)
{
    return model->artifact != NULL &&
           ft_artifact_get_header(model->artifact)->state == FT_ARTIFACT_INT8;
}

ft_status ft_validate_scales(const ft_model *model, float *scale, ft_error *err)
{
    const ft_quant_config *quant = &model->quant;
    bool quantized = quant->mode == FT_MODE_FAKE_QUANTIZE || quant->mode == FT_MODE_INT8;
    size_t points;
    if (quantized && !quant->dynamic && quant->amax == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: no calibrated ranges (" FT_AMAX_ENTRY ")",
                       model->path);
    if (quant->amax == NULL)
        return FT_OK;
    FT_TRY(find_scales(model, scale, &points, err));
    bool is_complete = points == quant->amax->count || !is_quantized_artifact(model);
    return is_complete ? FT_OK : fail_unknown_range(model, err);
}
