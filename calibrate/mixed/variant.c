/*
 * variant.c - a model in which every unit has a precision of its own, made from weights in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/variant.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_variants_init(ft_variants *v, const char *path, const ft_quant_config *quant,
                           const ft_unit *unit, size_t units, const char *device, ft_error *err)
{
    const ft_quant_config real = { .mode = FT_MODE_FLOAT, .quantized_head = quant->quantized_head };
    *v = (ft_variants){ .quant = *quant, .unit = unit, .units = units, .device = device };
    FT_TRY(ft_model_open_with_config(&v->real, path, NULL, &real, err));
    FT_TRY(ft_model_open_with_config(&v->int8, path, NULL, quant, err));
    ft_weight_spec *spec;
    FT_TRY(ft_family_weights(v->real->family, NULL, &v->real->config, &spec, &v->weights, err));
    free(spec);
    v->weight = ft_calloc(v->weights, sizeof *v->weight);
    return v->weight != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu weights", path, v->weights);
}

void ft_variants_fini(ft_variants *v)
{
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

static const ft_unit *unit_of_point(const ft_variants *v, const char *point, size_t *index)
{
    for (size_t i = 0; i < v->units; i++)
        for (int k = 0; k < v->unit[i].values; k++)
            if (strcmp(v->real->graph.value[v->unit[i].value[k]].name, point) == 0) {
                *index = i;
                return &v->unit[i];
            }
    return NULL;
}

/* The ranges of the static plan, with scales per token where a unit has no static ones. */
static ft_status make_ranges(ft_amax_table **out, const ft_variants *v,
                             const ft_precision *precision, ft_error *err)
{
    size_t index;
    *out = ft_amax_table_new();
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu ranges", v->quant.amax->count);
    for (size_t i = 0; i < v->quant.amax->count; i++) {
        ft_amax_entry entry = v->quant.amax->entry[i];
        if (unit_of_point(v, entry.name, &index) != NULL && precision[index] != FT_PRECISION_STATIC)
            snprintf(entry.method, sizeof entry.method, FT_AMAX_PER_TOKEN);
        FT_TRY(ft_amax_table_add(*out, &entry, err));
    }
    return FT_OK;
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* The matrices of a unit come from this model. */
static void take_weights(ft_variants *v, const ft_unit *unit, const ft_model *from)
{
    for (int i = 0; i < v->real->graph.nop; i++) {
        const ft_op *op = &v->real->graph.op[i];
        if (op->kind == FT_OP_LINEAR && ft_unit_is_read_by(unit, op))
            v->weight[op->weight[0]] = from->weight[op->weight[0]];
    }
}

/* Returns how many smoothings are selected. */
static size_t select_weights(ft_variants *v, const ft_precision *precision)
{
    size_t selected = 0;
    memcpy(v->weight, v->int8->weight, v->weights * sizeof *v->weight);
    for (size_t i = 0; i < v->units; i++) {
        const ft_smoothing *smoothing = ft_variants_smoothing(v, &v->unit[i]);
        if (precision[i] == FT_PRECISION_FLOAT)
            take_weights(v, &v->unit[i], v->real);
        if (precision[i] != FT_PRECISION_PER_TOKEN || smoothing == NULL)
            continue;
        take_weights(v, &v->unit[i], v->smoothed);
        v->selected[selected++] = *smoothing;
    }
    return selected;
}

ft_status ft_variant_open(ft_model **out, ft_variants *v, const ft_precision *precision,
                          ft_error *err)
{
    ft_amax_table *ranges;
    ft_status status = make_ranges(&ranges, v, precision, err);
    if (status == FT_OK) {
        ft_quant_config quant = v->quant;
        quant.amax = ranges;
        quant.n_smoothing = select_weights(v, precision);
        quant.smoothing = v->selected;
        const ft_model_parts parts = { .name = v->real->path,
                                       .family = v->real->family,
                                       .config = &v->int8->config,
                                       .weight = v->weight,
                                       .nweight = v->weights };
        status = ft_model_from_weights(out, &parts, &(ft_model_options){ .device = v->device },
                                       &quant, err);
    }
    if (status == FT_OK)
        (*out)->quant.amax = v->quant.amax; /* the plan has its scales */
    ft_amax_table_free(ranges);
    return status;
}

ft_status ft_variant_open_float(ft_model **out, const ft_variants *v, ft_error *err)
{
    const ft_quant_config real = { .mode = FT_MODE_FLOAT };
    return ft_model_open_with_config(out, v->real->path, &(ft_model_options){ .device = v->device },
                                     &real, err);
}
