/*
 * variant.c - a model in which every unit has a precision of its own, made from weights in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/variant.h"

#include "calibrate/weights/groupwise_weight.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_variants_init(ft_variants *v, const ft_variant_options *options, ft_error *err)
{
    const char *path = options->path;
    const ft_quant_config real = { .mode = FT_MODE_FLOAT,
                                   .quantized_head = options->quant->quantized_head };
    *v = (ft_variants){ .options = *options, .quant = *options->quant };
    FT_TRY(ft_model_open_with_config(&v->real, path, NULL, &real, err));
    FT_TRY(ft_model_open_with_config(&v->int8, path, NULL, options->quant, err));
    ft_weight_spec *spec;
    FT_TRY(ft_family_weights(v->real->family, NULL, &v->real->config, &spec, &v->weights, err));
    free(spec);
    v->weight = ft_calloc(v->weights, sizeof *v->weight);
    v->grouped = ft_calloc(v->weights, sizeof *v->grouped);
    v->bytes = ft_calloc(v->weights, sizeof *v->bytes);
    return v->weight != NULL && v->grouped != NULL && v->bytes != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu weights", path, v->weights);
}

void ft_variants_fini(ft_variants *v)
{
    for (size_t i = 0; i < v->weights && v->bytes != NULL; i++)
        free(v->bytes[i]);
    free(v->bytes);
    free(v->grouped);
    free(v->weight);
    free(v->selected);
    ft_model_close(v->smoothed);
    ft_model_close(v->int8);
    ft_model_close(v->real);
    *v = (ft_variants){ .weight = NULL };
}

/* ---- Smoothing ---------------------------------------------------------------------------- */

ft_status ft_variants_smooth(ft_variants *v, const ft_smoothing *smoothing, size_t count,
                             ft_error *err)
{
    ft_quant_config quant = v->quant;
    if (count == 0)
        return FT_OK;
    quant.smoothing = smoothing;
    quant.n_smoothing = count;
    FT_TRY(ft_model_open_with_config(&v->smoothed, v->real->path, NULL, &quant, err));
    v->selected = ft_calloc(count, sizeof *v->selected);
    if (v->selected == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu factors", v->real->path, count);
    v->smoothing = smoothing;
    v->n_smoothing = count;
    return FT_OK;
}

const ft_smoothing *ft_variants_smoothing(const ft_variants *v, const ft_unit *unit)
{
    for (size_t i = 0; i < v->n_smoothing && !unit->is_attention; i++)
        if (strcmp(v->smoothing[i].point, unit->name) == 0)
            return &v->smoothing[i];
    return NULL;
}

/* ---- Ranges ------------------------------------------------------------------------------- */

/* The unit that a calibration point belongs to; options.units: none. */
static size_t unit_of_point(const ft_variants *v, const char *point)
{
    const ft_unit *unit = v->options.unit;
    size_t i = 0;
    for (; i < v->options.units; i++)
        for (int k = 0; k < unit[i].values; k++)
            if (strcmp(v->real->graph.value[unit[i].value[k]].name, point) == 0)
                return i;
    return i;
}

/*
 * The ranges of the initial plan, with scales per token where a unit has no static ones; NULL if
 * the initial plan has no ranges.
 */
static ft_status make_ranges(ft_amax_table **out, const ft_variants *v,
                             const ft_precision *precision, ft_error *err)
{
    *out = NULL;
    if (v->quant.amax == NULL)
        return FT_OK;
    *out = ft_amax_table_new();
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu ranges", v->quant.amax->count);
    for (size_t i = 0; i < v->quant.amax->count; i++) {
        ft_amax_entry entry = v->quant.amax->entry[i];
        size_t unit = unit_of_point(v, entry.name);
        if (unit < v->options.units && precision[unit] != FT_PRECISION_STATIC)
            snprintf(entry.method, sizeof entry.method, FT_AMAX_PER_TOKEN);
        FT_TRY(ft_amax_table_add(*out, &entry, err));
    }
    return FT_OK;
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* Whether an operation multiplies a unit by a matrix that is quantized. */
static bool is_quantized(const ft_variants *v, const ft_unit *unit, const ft_op *op)
{
    return op->kind == FT_OP_LINEAR && ft_unit_is_read_by(unit, op) &&
           v->int8->weight[op->weight[0]].dtype == FT_I8;
}

/* The quantized matrices of a unit become these of [weights]. */
static void take_weights(ft_variants *v, const ft_unit *unit, const ft_weight *from)
{
    for (int i = 0; i < v->real->graph.nop; i++) {
        const ft_op *op = &v->real->graph.op[i];
        if (is_quantized(v, unit, op))
            v->weight[op->weight[0]] = from[op->weight[0]];
    }
}

static ft_status group_weight(ft_variants *v, int index, ft_error *err)
{
    const ft_weight *real = &v->real->weight[index];
    ft_groupwise_error error;
    if (v->bytes[index] != NULL)
        return FT_OK;
    const ft_weight_matrix matrix = { .name = real->name,
                                      .dtype = real->dtype,
                                      .data = real->data,
                                      .rows = real->rows,
                                      .cols = real->cols };
    size_t bytes = ft_groupwise_weight_bytes(&matrix, &v->options.groupwise);
    v->grouped[index] = *real;
    v->grouped[index].prepacked = NULL;
    v->bytes[index] = ft_calloc_aligned(bytes);
    if (v->bytes[index] == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", real->name, bytes);
    return ft_groupwise_weight_init(&v->grouped[index], v->bytes[index], &error, &matrix,
                                    &v->options.groupwise, v->options.threads, err);
}

/* The matrices of a unit, quantized group-wise unless an earlier variant had them. */
static ft_status take_grouped_weights(ft_variants *v, const ft_unit *unit, ft_error *err)
{
    for (int i = 0; i < v->real->graph.nop; i++) {
        const ft_op *op = &v->real->graph.op[i];
        if (is_quantized(v, unit, op))
            FT_TRY(group_weight(v, op->weight[0], err));
    }
    take_weights(v, unit, v->grouped);
    return FT_OK;
}

/* Appends the smoothing of a unit, if it has one, to those of the next variant. */
static void take_smoothing(ft_variants *v, size_t *selected, const ft_unit *unit)
{
    const ft_smoothing *smoothing = ft_variants_smoothing(v, unit);
    if (smoothing == NULL)
        return;
    take_weights(v, unit, v->smoothed->weight);
    v->selected[(*selected)++] = *smoothing;
}

/* Chooses the weights and the smoothings of the next variant. */
static ft_status select_weights(size_t *smoothings, ft_variants *v, const ft_precision *precision,
                                ft_error *err)
{
    *smoothings = 0;
    memcpy(v->weight, v->int8->weight, v->weights * sizeof *v->weight);
    for (size_t i = 0; i < v->options.units; i++) {
        const ft_unit *unit = &v->options.unit[i];
        if (precision[i] == FT_PRECISION_PER_TOKEN)
            take_smoothing(v, smoothings, unit);
        else if (precision[i] == FT_PRECISION_PER_GROUP)
            FT_TRY(take_grouped_weights(v, unit, err));
        else if (precision[i] == FT_PRECISION_FLOAT)
            take_weights(v, unit, v->real->weight);
    }
    return FT_OK;
}

static ft_status open_selected(ft_model **out, const ft_variants *v, const ft_amax_table *ranges,
                               size_t smoothings, ft_error *err)
{
    ft_quant_config quant = v->quant;
    quant.amax = ranges;
    quant.n_smoothing = smoothings;
    quant.smoothing = v->selected;
    const ft_model_parts parts = { .name = v->real->path,
                                   .family = v->real->family,
                                   .config = &v->int8->config,
                                   .weight = v->weight,
                                   .nweight = v->weights };
    FT_TRY(ft_model_from_weights(out, &parts, &(ft_model_options){ .device = v->options.device },
                                 &quant, err));
    (*out)->quant.amax = v->quant.amax; /* the plan has its scales */
    return FT_OK;
}

ft_status ft_variant_open(ft_model **out, ft_variants *v, const ft_precision *precision,
                          ft_error *err)
{
    ft_amax_table *ranges;
    size_t smoothings;
    ft_status status = make_ranges(&ranges, v, precision, err);
    if (status == FT_OK)
        status = select_weights(&smoothings, v, precision, err);
    if (status == FT_OK)
        status = open_selected(out, v, ranges, smoothings, err);
    ft_amax_table_free(ranges);
    return status;
}

ft_status ft_variant_open_float(ft_model **out, const ft_variants *v, ft_error *err)
{
    const ft_quant_config real = { .mode = FT_MODE_FLOAT };
    return ft_model_open_with_config(
        out, v->real->path, &(ft_model_options){ .device = v->options.device }, &real, err);
}
