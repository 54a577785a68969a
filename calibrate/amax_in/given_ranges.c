/*
 * given_ranges.c - the ranges that a file gives for the calibration points of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/given_ranges.h"

#include "calibrate/amax_in/name_list.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ft_status ft_given_ranges_init(ft_given_ranges *ranges, const char *path,
                               const ft_amax_input *input, ft_error *err)
{
    size_t values = (size_t) input->model->graph.nvalue;
    *ranges = (ft_given_ranges){ .path = path, .input = input };
    ranges->range = ft_calloc(values, sizeof *ranges->range);
    return ranges->range != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu ranges", path, values);
}

void ft_given_ranges_fini(ft_given_ranges *ranges)
{
    free(ranges->range);
    ranges->range = NULL;
}

int ft_given_ranges_find(const ft_given_ranges *ranges, const char *point)
{
    const ft_plan *graph = &ranges->input->model->graph;
    int value = ft_plan_find(graph, point);
    return value >= 0 && graph->value[value].point ? value : -1;
}

/* ---- Adding ------------------------------------------------------------------------------- */

ft_status ft_given_ranges_add(ft_given_ranges *ranges, int value, const ft_amax_entry *entry,
                              const char *source, ft_error *err)
{
    ft_given_range *range = &ranges->range[value];
    if (!(entry->amax > 0.0f) || !isfinite(entry->amax))
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: amax %g, expected a positive finite number; calibrate this "
                       "quantizer first",
                       ranges->path, source, (double) entry->amax);
    if (!isnormal(ft_scale_from_amax(entry->amax)))
        return ft_fail(err, FT_EFORMAT, "%s: %s: amax %g is too small for a scale", ranges->path,
                       source, (double) entry->amax);
    range->smallest = range->given ? fminf(range->smallest, entry->amax) : entry->amax;
    if (!range->given || entry->amax > range->entry.amax)
        range->entry = *entry;
    range->given = true;
    return FT_OK;
}

ft_status ft_given_ranges_add_amax(ft_given_ranges *ranges, int value, float amax,
                                   const char *method, const char *source, ft_error *err)
{
    ft_amax_entry entry = { .amax = amax, .sqnr = (double) INFINITY };
    snprintf(entry.method, sizeof entry.method, "%s", method);
    return ft_given_ranges_add(ranges, value, &entry, source, err);
}

/* ---- Points that the int8 model does not quantize ------------------------------------------ */

static float max_magnitude(const ft_artifact_tensor *vector)
{
    float largest = 0.0f;
    for (int64_t i = 0; vector != NULL && i < vector->dim[0]; i++)
        largest = fmaxf(largest, fabsf(((const float *) vector->data)[i]));
    return largest;
}

/*
 * A bound of the outputs of a norm: a normalized row of n values has a sum of squares of at most n,
 * so no magnitude exceeds sqrt(n).
 */
static float norm_bound(const ft_model *model, const ft_op *op)
{
    const ft_plan *graph = &model->graph;
    float bound = sqrtf((float) graph->value[op->out].cols);
    bound *= max_magnitude(ft_artifact_find(model->artifact, graph->weight[op->weight[0]].name));
    if (op->weight[1] >= 0)
        bound +=
            max_magnitude(ft_artifact_find(model->artifact, graph->weight[op->weight[1]].name));
    return bound;
}

/*
 * Gives a point that the int8 model does not quantize a bound of its values: the range then only
 * decides whether floats are stored with 16 bits. False if no bound is known.
 */
static bool find_bound(const ft_given_ranges *ranges, int value, ft_amax_entry *entry)
{
    const ft_model *model = ranges->input->model;
    const ft_plan *graph = &model->graph;
    int producer = ft_plan_producer(graph, value);
    float bound = 0.0f;
    if (ranges->input->is_quantized(ranges->input->user, graph->value[value].name))
        return false;
    if (graph->value[value].inner) /* probabilities */
        bound = 1.0f;
    else if (producer >= 0 && graph->op[producer].kind == FT_OP_NORM)
        bound = norm_bound(model, &graph->op[producer]);
    *entry = (ft_amax_entry){ .amax = bound, .method = "bound", .sqnr = (double) INFINITY };
    return bound > 0.0f && isfinite(bound) && isnormal(ft_scale_from_amax(bound));
}

/* ---- The table ---------------------------------------------------------------------------- */

static ft_status add_point(const ft_given_ranges *ranges, int value, ft_amax_table *table,
                           ft_name_list *missing, ft_name_list *different, ft_error *err)
{
    const ft_given_range *range = &ranges->range[value];
    const char *name = ranges->input->model->graph.value[value].name;
    ft_amax_entry entry = range->entry;
    if (!range->given && !find_bound(ranges, value, &entry)) {
        ft_name_list_add(missing, name);
        return FT_OK;
    }
    if (range->given && (double) entry.amax > 1.01 * (double) range->smallest)
        ft_name_list_add(different, name);
    entry.name = (char *) (uintptr_t) name; /* copied */
    return ft_amax_table_add(table, &entry, err);
}

static ft_status add_points(const ft_given_ranges *ranges, ft_amax_table *table, ft_error *err)
{
    const ft_plan *graph = &ranges->input->model->graph;
    ft_name_list missing = { 0 }, different = { 0 };
    for (int i = 0; i < graph->nvalue; i++)
        if (graph->value[i].point)
            FT_TRY(add_point(ranges, i, table, &missing, &different, err));
    if (missing.count > 0)
        return ft_fail(err, FT_EFORMAT, "%s: has no range for %zu calibration point%s: %s",
                       ranges->path, missing.count, missing.count == 1 ? "" : "s",
                       ft_name_list_text(&missing));
    if (different.count > 0)
        ft_messages_add(ranges->input->notes, FT_OK,
                        "%s: ranges of one value differ by more than 1 %%, the largest is used: %s",
                        ranges->path, ft_name_list_text(&different));
    return FT_OK;
}

ft_status ft_given_ranges_finish(const ft_given_ranges *ranges, ft_amax_table **out, ft_error *err)
{
    ft_amax_table *table = ft_amax_table_new();
    ft_status status = table != NULL ? add_points(ranges, table, err)
                                     : ft_fail(err, FT_ENOMEM, "%s: no memory", ranges->path);
    *out = status == FT_OK ? table : NULL;
    if (status != FT_OK)
        ft_amax_table_free(table);
    return status;
}

/* ---- Rows of weights ----------------------------------------------------------------------- */

ft_status ft_given_row_ranges(ft_quantized_weight *quantized, const float *amax, const char *path,
                              const char *source, ft_error *err)
{
    size_t rows = quantized->weights.rows;
    if (quantized->scale == NULL)
        quantized->scale = ft_calloc(rows, sizeof *quantized->scale);
    if (quantized->scale == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: %s: no memory for scales", path, source);
    FT_TRY(ft_weight_matrix_scales(quantized->scale, &quantized->weights, err));
    for (size_t row = 0; row < rows; row++) {
        if (!(amax[row] >= 0.0f) || !isfinite(amax[row]))
            return ft_fail(err, FT_EFORMAT,
                           "%s: %s: amax %g of row %zu, expected a finite number from 0", path,
                           source, (double) amax[row], row);
        if (isnormal(ft_scale_from_amax(amax[row])))
            quantized->scale[row] = ft_scale_from_amax(amax[row]);
    }
    return FT_OK;
}
