/*
 * fold_ranges.c - folds AWQ factors into the model: inputs are divided, columns multiplied, outputs
 * unchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/fold_ranges.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- Factors ----------------------------------------------------------------------------- */

ft_status ft_folded_scales_init(ft_folded_scales *s, const ft_model *model, ft_error *err)
{
    size_t count = (size_t) model->nweight;
    *s = (ft_folded_scales){ .model = model };
    s->row = ft_calloc(count, sizeof(float *));
    s->col = ft_calloc(count, sizeof(float *));
    s->vector = ft_calloc(count, sizeof(float *));
    if (s->row != NULL && s->col != NULL && s->vector != NULL)
        return FT_OK;
    return ft_fail(err, FT_ENOMEM, "%s: no memory for factors", model->path);
}

static void free_all(float **of_weight, int count)
{
    for (int i = 0; i < count && of_weight != NULL; i++)
        free(of_weight[i]);
    free(of_weight);
}

void ft_folded_scales_fini(ft_folded_scales *s)
{
    int count = s->model != NULL ? s->model->nweight : 0;
    free_all(s->row, count);
    free_all(s->col, count);
    free_all(s->vector, count);
    *s = (ft_folded_scales){ 0 };
}

static bool multiply_columns(ft_folded_scales *s, int weight, const float *factor, size_t cols)
{
    float *copy = s->col[weight] = ft_calloc(cols, sizeof *copy);
    if (copy != NULL)
        memcpy(copy, factor, cols * sizeof *copy);
    return copy != NULL;
}

static bool divide_vector(ft_folded_scales *s, int weight, const ft_scale_fold *fold,
                          const float *factor)
{
    if (weight < 0)
        return true;
    const ft_weight *from = &s->model->weight[weight];
    const ft_artifact_tensor *stored = ft_artifact_find(s->model->artifact, from->name);
    const float *data = stored->data; /* the model's own copy may be on a device */
    float *out = s->vector[weight] = ft_calloc(from->cols, sizeof *out);
    for (size_t col = 0; col < fold->cols && out != NULL; col++) {
        size_t at = ft_scale_fold_row(fold, col);
        out[at] = data[at] / factor[col];
    }
    return out != NULL;
}

static bool divide_rows(ft_folded_scales *s, const ft_scale_fold *fold, const float *factor)
{
    if (fold->producer < 0)
        return true;
    float *out = s->row[fold->producer] =
        ft_calloc(s->model->weight[fold->producer].rows, sizeof *out);
    for (size_t col = 0; col < fold->cols && out != NULL; col++)
        out[ft_scale_fold_row(fold, col)] = 1.0f / factor[col];
    return out != NULL;
}

ft_status ft_folded_scales_add(ft_folded_scales *s, const ft_scale_fold *fold, const float *factor,
                               ft_error *err)
{
    const ft_plan *graph = &s->model->graph;
    bool success = divide_vector(s, fold->norm[0], fold, factor) &&
                   divide_vector(s, fold->norm[1], fold, factor) && divide_rows(s, fold, factor) &&
                   divide_vector(s, fold->bias, fold, factor);
    for (int i = 0; i < graph->nop && success; i++)
        if (graph->op[i].in[0] == fold->value)
            success = multiply_columns(s, graph->op[i].weight[0], factor, fold->cols);
    return success ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory for factors", s->model->path);
}
