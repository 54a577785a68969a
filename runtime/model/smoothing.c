/*
 * smoothing.c - the smoothing of calibration points: SmoothQuant without folding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/smoothing.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <math.h>
#include <string.h>

static bool is_smoothing(const ft_artifact_tensor *tensor)
{
    return strcmp(tensor->role, FT_SMOOTHING_ROLE) == 0;
}

size_t ft_smoothing_count(const ft_model *model)
{
    size_t count = 0, tensors = model->artifact != NULL ? ft_artifact_count(model->artifact) : 0;
    for (size_t i = 0; i < tensors; i++)
        count += is_smoothing(ft_artifact_at(model->artifact, i));
    return count + model->quant.n_smoothing;
}

/* Reciprocals of such numbers are normal too. */
static bool all_valid(const float *factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(factor[i] >= FT_SMOOTHING_MIN && factor[i] <= 1.0f / FT_SMOOTHING_MIN))
            return false;
    return true;
}

void ft_smoothing_reciprocals(float *out, const float *factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = 1.0f / factor[i];
}

/* ---- Binding ------------------------------------------------------------------------------ */

static void append(ft_model *model, const char *name, size_t cols, const float *data)
{
    ft_weight *weight = &model->weight[model->nweight++];
    *weight = (ft_weight){ .rows = 1, .cols = cols, .dtype = FT_F32, .data = data };
    snprintf(weight->name, sizeof weight->name, "%s", name);
}

static ft_status bind_tensor(ft_model *model, const ft_artifact_tensor *tensor, ft_error *err)
{
    if (ft_artifact_get_header(model->artifact)->state != FT_ARTIFACT_INT8)
        return ft_fail(err, FT_EFORMAT, "%s: %s: only an int8 artifact can be smoothed",
                       model->path, tensor->name);
    if (tensor->dtype != FT_F32 || tensor->layout != FT_ROW || tensor->ndim != 1 ||
        !ft_ends_with(tensor->name, FT_SMOOTHING_SUFFIX) || strlen(tensor->name) >= FT_NAME)
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: a smoothing is an F32 vector named POINT" FT_SMOOTHING_SUFFIX,
                       model->path, tensor->name);
    if (!all_valid(tensor->data, (size_t) tensor->dim[0]))
        return ft_fail(err, FT_EFORMAT, "%s: %s: elements are not between %g and %g", model->path,
                       tensor->name, (double) FT_SMOOTHING_MIN, 1.0 / (double) FT_SMOOTHING_MIN);
    append(model, tensor->name, (size_t) tensor->dim[0], tensor->data);
    return FT_OK;
}

static ft_status bind_factors(ft_model *model, const ft_smoothing *smoothing, ft_error *err)
{
    char name[FT_NAME];
    int length = snprintf(name, sizeof name, "%s" FT_SMOOTHING_SUFFIX, smoothing->point);
    if (length >= FT_NAME || !all_valid(smoothing->factor, smoothing->cols))
        return ft_fail(err, FT_EARG, "%s: %s: the name is too long or a factor out of range",
                       model->path, smoothing->point);
    float *reciprocal = ft_calloc(smoothing->cols, sizeof *reciprocal);
    if (reciprocal == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu factors", model->path,
                       smoothing->cols);
    ft_smoothing_reciprocals(reciprocal, smoothing->factor, smoothing->cols);
    model->quantized[model->nweight] = reciprocal;
    append(model, name, smoothing->cols, reciprocal);
    return FT_OK;
}

ft_status ft_smoothing_bind(ft_model *model, ft_error *err)
{
    for (size_t i = 0; model->artifact != NULL && i < ft_artifact_count(model->artifact); i++) {
        const ft_artifact_tensor *tensor = ft_artifact_at(model->artifact, i);
        if (is_smoothing(tensor))
            FT_TRY(bind_tensor(model, tensor, err));
    }
    for (size_t i = 0; i < model->quant.n_smoothing; i++)
        FT_TRY(bind_factors(model, &model->quant.smoothing[i], err));
    return FT_OK;
}

/* ---- Checks ------------------------------------------------------------------------------- */

/* The value of the graph that a smoothing vector belongs to; -1: none. */
static int smoothed_point(const ft_model *model, const ft_weight *weight)
{
    char point[FT_NAME];
    snprintf(point, sizeof point, "%.*s",
             (int) (strlen(weight->name) - strlen(FT_SMOOTHING_SUFFIX)), weight->name);
    int value = ft_plan_find(&model->graph, point);
    return value >= 0 && model->graph.value[value].point && !model->graph.value[value].inner ? value
                                                                                             : -1;
}

/* Whether all readers of a value that could be quantized are linears with int8 weights. */
static bool only_int8_linears_read(const ft_model *model, int value)
{
    int linears = 0, others = 0;
    for (int i = 0; i < model->graph.nop; i++) {
        const ft_op *op = &model->graph.op[i];
        for (int j = 0; j < FT_MAX_IN; j++) {
            if (op->in[j] != value)
                continue;
            bool int8 = op->kind == FT_OP_LINEAR && model->quantizable[op->weight[0]];
            linears += int8;
            others += ft_op_info_of(op->kind)->reads == FT_READS_STATIC;
        }
    }
    return linears > 0 && others == 0;
}

ft_status ft_smoothing_check(const ft_model *model, ft_error *err)
{
    size_t count = ft_smoothing_count(model);
    if (count > 0 && model->quant.int8_residual)
        return ft_fail(err, FT_EFORMAT, "%s: an int8 residual stream cannot be smoothed",
                       model->path);
    for (int i = 0; i < model->nweight; i++) {
        const ft_weight *weight = &model->weight[i];
        if (!ft_ends_with(weight->name, FT_SMOOTHING_SUFFIX))
            continue;
        int value = smoothed_point(model, weight);
        if (value < 0 || (size_t) model->graph.value[value].cols != weight->cols ||
            !only_int8_linears_read(model, value))
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: has %zu elements, but is no calibration point of that width "
                           "that int8 matrices alone read",
                           model->path, weight->name, weight->cols);
    }
    return FT_OK;
}

const float *ft_smoothing_of_weight(const ft_model *model, int weight)
{
    for (int i = 0; i < model->graph.nop; i++) {
        const ft_op *op = &model->graph.op[i];
        if (op->kind != FT_OP_LINEAR || op->weight[0] != weight)
            continue;
        const char *input = model->graph.value[op->in[0]].name;
        for (size_t k = 0; k < model->quant.n_smoothing; k++)
            if (strcmp(model->quant.smoothing[k].point, input) == 0)
                return model->quant.smoothing[k].factor;
    }
    return NULL;
}

const float *ft_smoothing_host_data(const ft_model *model, int index)
{
    if (model->quantized[index] != NULL)
        return model->quantized[index];
    return ft_artifact_find(model->artifact, model->weight[index].name)->data;
}
