/*
 * bind.c - bind the weights of a model to their data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/bind.h"

#include "runtime/error.h"
#include "runtime/model/folded.h"
#include "runtime/model/quantize_weight.h"
#include "runtime/model/smoothing.h"
#include "runtime/mem.h"
#include "runtime/graph/rope.h"
#include "runtime/graph/sinusoids.h"
#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>

static bool is_float_dtype(ft_dtype dtype)
{
    return dtype == FT_F32 || dtype == FT_F16 || dtype == FT_BF16;
}

static ft_status check_shape(const ft_model *model, const ft_artifact_tensor *tensor,
                             const ft_weight_spec *spec, ft_error *err)
{
    if (tensor->ndim == spec->ndim &&
        memcmp(tensor->dim, spec->dim, (size_t) spec->ndim * sizeof spec->dim[0]) == 0)
        return FT_OK;
    char found[FT_SHAPE_TEXT], expected[FT_SHAPE_TEXT];
    return ft_fail(err, FT_ESHAPE, "%s: %s: shape %s, expected %s", model->path, spec->name,
                   ft_shape_text(found, tensor->ndim, tensor->dim),
                   ft_shape_text(expected, spec->ndim, spec->dim));
}

/* The recipe may quantize the LM head; a quantized head is never tied to the embedding. */
static bool is_quantized_head(const ft_model *model, const char *name)
{
    return model->quant.quantized_head && strcmp(name, FT_HEAD_WEIGHT) == 0;
}

/* The quantized formats of linears: int8 with one scale per row, or group-wise. */
static bool is_quantized_linear(const ft_artifact_tensor *tensor)
{
    return tensor->dtype == FT_I8 ? tensor->layout == FT_COL4_4R2_8C : tensor->layout == FT_PANEL32;
}

/*
 * Vectors are F32.  Matrices are float, or quantized if their role allows it; whether the format
 * fits the artifact's state was checked when the artifact was opened.
 */
static ft_status check_storage(const ft_model *model, const ft_artifact_tensor *tensor,
                               const ft_weight_spec *spec, ft_error *err)
{
    bool is_float = ft_artifact_get_header(model->artifact)->state == FT_ARTIFACT_FLOAT;
    bool valid = tensor->layout == FT_ROW;
    if (spec->role == FT_ROLE_VECTOR)
        valid = valid && tensor->dtype == FT_F32;
    else
        valid = (spec->role == FT_ROLE_LINEAR && is_quantized_linear(tensor)) ||
                (valid && is_float_dtype(tensor->dtype));
    if (!valid)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: stored as %s %s, which is not valid for a %s weight", model->path,
                       spec->name, ft_dtype_name(tensor->dtype), ft_layout_name(tensor->layout),
                       ft_role_name(spec->role));
    ft_role role = is_float && is_quantized_head(model, spec->name) ? FT_ROLE_DENSE : spec->role;
    if (strcmp(tensor->role, ft_role_name(role)) != 0)
        return ft_fail(err, FT_EFORMAT, "%s: %s: role %s, expected %s", model->path, spec->name,
                       tensor->role, ft_role_name(spec->role));
    return FT_OK;
}

/* Bind weight `index` to a tensor of the artifact. */
static ft_status read_weight(ft_model *model, int index, const ft_weight_spec *spec, ft_error *err)
{
    bool is_shared = model->shares_embedding && strcmp(spec->name, FT_HEAD_WEIGHT) == 0;
    const ft_artifact_tensor *tensor =
        ft_artifact_find(model->artifact, is_shared ? "embed.word" : spec->name);
    if (tensor == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: %s: missing", model->path, spec->name);
    FT_TRY(check_shape(model, tensor, spec, err));
    if (!is_shared) /* it was checked under its own name */
        FT_TRY(check_storage(model, tensor, spec, err));
    ft_weight *weight = &model->weight[index];
    memcpy(weight->name, spec->name, sizeof weight->name);
    weight->rows = spec->ndim == 2 ? (size_t) spec->dim[0] : 1;
    weight->cols = (size_t) spec->dim[spec->ndim - 1];
    weight->dtype = tensor->dtype;
    weight->layout = tensor->layout;
    weight->scale = tensor->scale;
    weight->groupwise = tensor->groupwise;
    weight->data = tensor->data;
    return FT_OK;
}

/* Bind weight `index` to a weight in memory. */
static ft_status copy_weight(ft_model *model, int index, const ft_weight_spec *spec,
                             const ft_weight *source, ft_error *err)
{
    size_t rows = spec->ndim == 2 ? (size_t) spec->dim[0] : 1;
    size_t cols = (size_t) spec->dim[spec->ndim - 1];
    if (strcmp(source->name, spec->name) != 0)
        return ft_fail(err, FT_EARG, "%s: weight %d is %s, expected %s", model->path, index,
                       source->name, spec->name);
    if (source->rows != rows || source->cols != cols)
        return ft_fail(err, FT_ESHAPE, "%s: %s: shape [%zu, %zu], expected [%zu, %zu]", model->path,
                       spec->name, source->rows, source->cols, rows, cols);
    model->weight[index] = *source;
    return FT_OK;
}

/* Whether a linear is int8 or becomes int8.  Weights of quantized artifacts keep their format. */
static bool is_quantizable(const ft_model *model, const ft_weight *weight)
{
    const ft_quant_config *quant = &model->quant;
    bool is_float = model->artifact != NULL
                        ? ft_artifact_get_header(model->artifact)->state == FT_ARTIFACT_FLOAT
                        : quant->mode != FT_MODE_INT8;
    if (!is_float || !is_float_dtype(weight->dtype))
        return weight->dtype == FT_I8;
    return quant->is_int8 == NULL || quant->is_int8(quant->user, weight->name);
}

/* A float linear of a model that is opened as quantized. */
static ft_status quantize_weight(ft_model *model, int index, ft_error *err)
{
    ft_weight *weight = &model->weight[index];
    const float *factor = ft_smoothing_of_weight(model, index);
    if (model->quant.mode == FT_MODE_FAKE_QUANTIZE)
        return ft_fake_quantize_weight(weight, factor, &model->quantized[index], err);
    if (model->quant.mode == FT_MODE_INT8 && weight->dtype != FT_I8)
        return ft_int8_quantize_weight(weight, factor, &model->quantized[index], err);
    return FT_OK;
}

ft_status ft_model_quantize(ft_model *model, ft_error *err)
{
    for (int i = 0; i < model->nweight; i++)
        if (model->quantizable[i])
            FT_TRY(quantize_weight(model, i, err));
    return FT_OK;
}

/* From the artifact if `parts` is NULL. */
static ft_status bind_weight(ft_model *model, int index, const ft_weight_spec *spec,
                             const ft_model_parts *parts, ft_error *err)
{
    if (parts != NULL)
        FT_TRY(copy_weight(model, index, spec, &parts->weight[index], err));
    else
        FT_TRY(read_weight(model, index, spec, err));
    model->quantizable[index] =
        spec->role == FT_ROLE_LINEAR && is_quantizable(model, &model->weight[index]);
    return FT_OK;
}

static bool is_weight(const ft_weight_spec *spec, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(spec[i].name, name) == 0)
            return true;
    return false;
}

static bool is_expected(const ft_weight_spec *spec, size_t count, const ft_artifact_tensor *tensor)
{
    return is_weight(spec, count, tensor->name) || strcmp(tensor->role, FT_SMOOTHING_ROLE) == 0 ||
           strcmp(tensor->role, FT_FOLDED_ROLE) == 0;
}

/* Report a tensor of the artifact that is not a weight of the model. */
static ft_status fail_unknown_tensor(const ft_model *model, const ft_weight_spec *spec,
                                     size_t count, ft_error *err)
{
    for (size_t i = 0; i < ft_artifact_count(model->artifact); i++) {
        const ft_artifact_tensor *tensor = ft_artifact_at(model->artifact, i);
        if (!is_expected(spec, count, tensor))
            return ft_fail(err, FT_EFORMAT, "%s: %s: is not a weight of the model", model->path,
                           tensor->name);
    }
    return ft_fail(err, FT_EFORMAT, "%s: %s: stored, but the model shares its embedding table",
                   model->path, FT_HEAD_WEIGHT);
}

/*
 * Compute the position table that depends on the configuration alone, if there is one: RoPE
 * frequencies or sinusoidal embeddings.  It follows the weights of the family's table.
 */
static ft_status make_position_table(ft_model *model, ft_error *err)
{
    const ft_config *c = &model->config;
    bool rotary = c->rope != FT_ROPE_NONE;
    if (!rotary && c->sinusoids == FT_SINUSOIDS_NONE)
        return FT_OK;
    ft_weight table = { .rows = rotary ? 1 : (size_t) c->positions,
                        .cols = (size_t) (rotary ? c->head_size / 2 : c->hidden),
                        .dtype = FT_F32 };
    snprintf(table.name, sizeof table.name, "%s", rotary ? FT_ROPE_WEIGHT : FT_SINUSOIDS_WEIGHT);
    model->positions = ft_calloc(table.rows * table.cols, sizeof *model->positions);
    if (model->positions == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %s", model->path, table.name);
    if (rotary)
        ft_rope_frequencies(model->positions, c);
    else
        ft_sinusoids_write(model->positions, c);
    table.data = model->positions;
    model->weight[model->nweight++] = table;
    return FT_OK;
}

ft_status ft_model_bind(ft_model *model, const ft_model_parts *parts, ft_error *err)
{
    ft_weight_spec *spec;
    size_t count;
    FT_TRY(ft_family_weights(model->family, NULL, &model->config, &spec, &count, err));
    for (size_t i = 0; i < count; i++)
        if (is_quantized_head(model, spec[i].name))
            spec[i].role = FT_ROLE_LINEAR;
    size_t smoothed = ft_smoothing_count(model), total = count + smoothed + 1;
    model->weight = ft_calloc(total, sizeof *model->weight);
    model->quantizable = ft_calloc(total, sizeof *model->quantizable);
    model->quantized = ft_calloc(total, sizeof *model->quantized);
    ft_status status = FT_OK;
    if (model->weight == NULL || model->quantizable == NULL || model->quantized == NULL)
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for %zu weights", model->path, count);
    else if (parts != NULL && parts->nweight != count)
        status = ft_fail(err, FT_EARG, "%s: %zu weights, expected %zu", model->path, parts->nweight,
                         count);
    else
        model->nweight = (int) count;
    for (size_t i = 0; i < count && status == FT_OK; i++)
        status = bind_weight(model, (int) i, &spec[i], parts, err);
    if (status == FT_OK && parts == NULL &&
        ft_artifact_count(model->artifact) + model->shares_embedding !=
            count + smoothed - model->quant.n_smoothing + ft_folded_count(model->artifact))
        status = fail_unknown_tensor(model, spec, count, err);
    if (status == FT_OK)
        status = ft_smoothing_bind(model, err);
    if (status == FT_OK)
        status = make_position_table(model, err);
    free(spec);
    return status;
}
