/*
 * suspects.c - the ranges and matrices of a quantized model whose scales cost more than they need
 * to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/suspects.h"

#include "kernels/math/elementary.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"
#include "runtime/tools/inspect/column_scales.h"
#include "runtime/tools/inspect/observed_counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double ft_suspect_loss_db(const ft_suspect *s)
{
    return isinf(s->best_db) && isinf(s->sqnr_db) ? 0.0 : s->best_db - s->sqnr_db;
}

/* A group is a row, or a part of it. */
static void describe_group(char out[FT_SUSPECT_TEXT], const ft_weight_error *e)
{
    if (e->is_row)
        snprintf(out, FT_SUSPECT_TEXT, "row %zu is %.3g times the float row", e->worst_row,
                 e->factor);
    else
        snprintf(out, FT_SUSPECT_TEXT, "row %zu, columns %zu-%zu: %.3g times float", e->worst_row,
                 e->first_col, e->end_col - 1, e->factor);
}

void ft_suspect_describe(char out[FT_SUSPECT_TEXT], const ft_suspect *s)
{
    if (s->is_range)
        snprintf(out, FT_SUSPECT_TEXT, "range %.4g, values up to %.4g, best range %.4g%s",
                 (double) s->range.amax, (double) s->range.max, (double) s->range.best_amax,
                 s->is_used ? "" : "; not in use");
    else
        describe_group(out, &s->weight);
}

/* ---- Ranges -------------------------------------------------------------------------------- */

/* The range of a point, or NULL: it has none. */
static const ft_amax_entry *range_of(const ft_model *quantized, const char *name)
{
    const ft_amax_entry *entry = ft_amax_table_find(ft_artifact_amax(quantized->artifact), name);
    return entry == NULL || ft_amax_entry_is_per_token(entry) ? NULL : entry;
}

/* Some points are only observed, such as probabilities of attention. */
static bool uses_range(const ft_plan *plan, const char *name)
{
    int value = ft_plan_find(plan, name);
    return value >= 0 && !plan->value[value].inner && plan->value[value].scale > 0.0f;
}

static ft_status add_ranges(ft_suspects *out, ft_observed_counts *counts, const ft_model *observed,
                            const ft_model *quantized, ft_error *err)
{
    for (int i = 0; i < counts->count; i++) {
        const ft_value *v = &observed->plan.value[i];
        const ft_amax_entry *entry = v->point ? range_of(quantized, v->name) : NULL;
        if (entry == NULL)
            continue;
        ft_suspect *s = &out->suspect[out->count++];
        *s = (ft_suspect){ .is_range = true, .is_used = uses_range(&quantized->plan, v->name) };
        memcpy(s->name, v->name, FT_NAME);
        FT_TRY(ft_range_error_measure(&s->range, v->name, &counts->of_value[i], entry->amax, err));
        s->sqnr_db = s->range.sqnr_db;
        s->best_db = s->range.best_db;
    }
    return FT_OK;
}

static ft_status find_ranges(ft_suspects *out, const ft_model *observed,
                             const ft_column_scales *scales, const ft_dataset *data, size_t samples,
                             ft_error *err)
{
    ft_observed_counts counts;
    if (ft_artifact_amax(scales->model->artifact) == NULL)
        return FT_OK;
    ft_status status = ft_observed_counts_measure(&counts, observed, scales, data, samples, err);
    if (status == FT_OK)
        status = add_ranges(out, &counts, observed, scales->model, err);
    ft_observed_counts_fini(&counts);
    return status;
}

/* ---- Matrices ------------------------------------------------------------------------------ */

static const ft_weight *find_weight(const ft_model *model, const char *name)
{
    for (int i = 0; i < model->nweight; i++)
        if (strcmp(model->weight[i].name, name) == 0)
            return &model->weight[i];
    return NULL;
}

static ft_status find_matrices(ft_suspects *out, const ft_model *real,
                               const ft_column_scales *scales, ft_error *err)
{
    const ft_model *quantized = scales->model;
    for (int i = 0; i < quantized->nweight; i++) {
        const ft_weight *w = &quantized->weight[i], *float_weight = find_weight(real, w->name);
        if (w->data == NULL || !ft_weight_is_quantized(w) || float_weight == NULL ||
            float_weight->data == NULL || ft_weight_is_quantized(float_weight))
            continue;
        ft_suspect *s = &out->suspect[out->count++];
        *s = (ft_suspect){ .is_used = true };
        memcpy(s->name, w->name, FT_NAME);
        ft_weight_rescaling rescaling = ft_column_scales_of_matrix(scales, i);
        FT_TRY(ft_weight_error_measure(&s->weight, float_weight, w, &rescaling, err));
        s->sqnr_db = s->weight.group_db;
        s->best_db = s->weight.best_db;
    }
    return FT_OK;
}

/* ---- Both ---------------------------------------------------------------------------------- */

static bool is_suspicious(const ft_suspect *s)
{
    return s->is_used && ft_suspect_loss_db(s) >= (double) FT_SUSPICIOUS_LOSS;
}

static double suspicion(const ft_suspect *s)
{
    bool has_values = s->is_range && s->range.max > 0.0f;
    double excess = has_values ? (double) s->range.amax / (double) s->range.max : 1.0;
    return ft_suspect_loss_db(s) + (excess > 1.0 ? 20.0 * ft_math_log10(excess) : 0.0);
}

/* Suspicious ones first, then by suspicion, then by name. */
static int by_suspicion(const void *a, const void *b)
{
    double x = suspicion(a), y = suspicion(b);
    if (is_suspicious(a) != is_suspicious(b))
        return is_suspicious(a) ? -1 : 1;
    if (x < y || x > y)
        return x < y ? 1 : -1;
    return strcmp(((const ft_suspect *) a)->name, ((const ft_suspect *) b)->name);
}

static ft_status find_all(ft_suspects *out, const ft_model *observed, const ft_model *quantized,
                          const ft_dataset *data, size_t samples, ft_error *err)
{
    ft_column_scales scales;
    ft_status status = ft_column_scales_init(&scales, quantized, err);
    if (status == FT_OK)
        status = find_ranges(out, observed, &scales, data, samples, err);
    if (status == FT_OK)
        status = find_matrices(out, observed, &scales, err);
    ft_column_scales_fini(&scales);
    return status;
}

ft_status ft_suspects_find(ft_suspects *out, const char *real_path, const ft_model *quantized,
                           const ft_dataset *data, size_t samples, ft_error *err)
{
    ft_model *observed;
    *out = (ft_suspects){ 0 };
    FT_TRY(ft_model_open_with_config(&observed, real_path, NULL,
                                     &(ft_quant_config){ .mode = FT_MODE_OBSERVE }, err));
    out->suspect =
        ft_calloc((size_t) (observed->plan.nvalue + quantized->nweight), sizeof *out->suspect);
    ft_status status =
        out->suspect != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory to compare");
    if (status == FT_OK)
        status = find_all(out, observed, quantized, data, samples, err);
    if (status == FT_OK)
        qsort(out->suspect, out->count, sizeof *out->suspect, by_suspicion);
    ft_model_close(observed);
    return status;
}

void ft_suspects_fini(ft_suspects *suspects)
{
    free(suspects->suspect);
    *suspects = (ft_suspects){ 0 };
}

void ft_suspects_fill_row(ft_listing_cell *cell, const void *source, size_t row)
{
    const ft_suspect *s = &((const ft_suspects *) source)->suspect[row];
    cell[0].text = s->name;
    ft_listing_cell_format(&cell[1], "%.2f", ft_suspect_loss_db(s));
    ft_listing_cell_format(&cell[2], "%.2f", s->sqnr_db);
    ft_listing_cell_format(&cell[3], "%.2f", s->best_db);
    ft_suspect_describe(cell[4].buffer, s);
    cell[4].text = cell[4].buffer;
}
