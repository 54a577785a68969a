/*
 * units.c - the parts of a model whose precision is chosen separately.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/units.h"

#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <stdlib.h>

const char *ft_precision_name(ft_precision precision)
{
    static const char *const names[FT_PRECISIONS] = { "static", "per token", "per group", "float" };
    return names[precision];
}

bool ft_unit_is_read_by(const ft_unit *unit, const ft_op *op)
{
    for (int i = 0; i < unit->values; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (op->in[j] == unit->value[i])
                return true;
    return false;
}

static bool is_attention(const ft_op *op)
{
    return ft_op_info_of(op->kind)->reads == FT_READS_STATIC;
}

/* Whether the producer of a value writes quantized rows with scales of their own. */
static bool is_quantized_in_place(const ft_plan *graph, int value)
{
    int producer = ft_plan_producer(graph, value);
    return producer >= 0 && (ft_op_info_of(graph->op[producer].kind)->writes & FT_CAN_DYNAMIC) != 0;
}

static ft_unit attention_unit(const ft_plan *graph, const ft_op *op)
{
    ft_unit unit = { .name = graph->value[op->in[0]].name, .is_attention = true };
    for (int i = 0; i < FT_MAX_IN; i++)
        unit.value[unit.values++] = op->in[i];
    return unit;
}

/* The unit of the input of linear `first`; no matrices if none of its readers is int8. */
static ft_unit linear_unit(const ft_model *model, const ft_op *first,
                           bool (*is_int8)(const void *user, const char *weight), const void *user)
{
    const ft_plan *graph = &model->graph;
    int value = first->in[0];
    ft_unit unit = { .name = graph->value[value].name,
                     .value = { value },
                     .values = 1,
                     .is_quantized_in_place = is_quantized_in_place(graph, value) };
    for (int i = 0; i < graph->nop; i++) {
        const ft_op *op = &graph->op[i];
        const ft_weight *weight = op->weight[0] >= 0 ? &model->weight[op->weight[0]] : NULL;
        if (op->kind == FT_OP_LINEAR && op->in[0] == value && is_int8(user, weight->name))
            unit.macs += (double) weight->rows * (double) weight->cols;
    }
    return unit;
}

static bool is_listed(const ft_unit *unit, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (!unit[i].is_attention && unit[i].value[0] == value)
            return true;
    return false;
}

ft_status ft_units_find(ft_unit **out, size_t *count, const ft_model *model,
                        bool (*is_int8)(const void *user, const char *weight), const void *user,
                        ft_error *err)
{
    const ft_plan *graph = &model->graph;
    ft_unit *unit = *out = ft_calloc((size_t) graph->nop, sizeof *unit);
    *count = 0;
    if (unit == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %d units", model->path, graph->nop);
    for (int i = 0; i < graph->nop; i++) {
        const ft_op *op = &graph->op[i];
        if (is_attention(op))
            unit[(*count)++] = attention_unit(graph, op);
        if (op->kind != FT_OP_LINEAR || !graph->value[op->in[0]].point ||
            is_listed(unit, *count, op->in[0]))
            continue;
        unit[*count] = linear_unit(model, op, is_int8, user);
        *count += unit[*count].macs > 0.0;
    }
    return FT_OK;
}

ft_precision ft_unit_finest(const ft_unit *unit)
{
    return unit->is_attention ? FT_PRECISION_PER_TOKEN : FT_PRECISION_FLOAT;
}

bool ft_unit_can_have(const ft_unit *unit, ft_precision precision)
{
    return precision >= unit->initial && precision <= ft_unit_finest(unit) &&
           (unit->has_groups || precision != FT_PRECISION_PER_GROUP);
}

bool ft_unit_is_int8(const ft_unit *unit, ft_precision precision)
{
    return !unit->is_attention && precision <= FT_PRECISION_PER_TOKEN;
}

/*
 * Measured on CPUs and an H200, rounded: a float matrix takes four times the time of an int8 one, a
 * group-wise one with int8 activations two and a half times; float attention as much as its
 * queries' matrix; a pass over an activation of n columns that quantizes it by rows as much as a
 * matrix of n x 64; scales that the producer computes, n x 8.
 */
double ft_unit_cost(const ft_unit *unit, const ft_model *model, ft_precision precision)
{
    double cols = (double) model->graph.value[unit->value[0]].cols;
    if (precision == FT_PRECISION_STATIC)
        return 0.0;
    if (unit->is_attention)
        return cols * cols;
    if (precision == FT_PRECISION_PER_TOKEN)
        return cols * (unit->is_quantized_in_place ? 8.0 : 64.0);
    return unit->macs * (precision == FT_PRECISION_PER_GROUP ? 1.5 : 3.0);
}
