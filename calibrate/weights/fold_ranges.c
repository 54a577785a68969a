/*
 * fold_ranges.c - folds factors of AWQ and SmoothQuant into the model: inputs are divided, columns
 * multiplied, outputs unchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/fold_ranges.h"

#include "runtime/container/features.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/folded.h"

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
    s->value = ft_calloc((size_t) model->graph.nvalue, sizeof *s->value);
    if (s->row != NULL && s->col != NULL && s->vector != NULL && s->value != NULL)
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
    for (size_t i = 0; i < s->count; i++)
        free(s->value[i].factor);
    free(s->value);
    *s = (ft_folded_scales){ 0 };
}

static float *copy_of(const float *factor, size_t cols)
{
    float *copy = ft_calloc(cols, sizeof *copy);
    if (copy != NULL)
        memcpy(copy, factor, cols * sizeof *copy);
    return copy;
}

static bool multiply_columns(ft_folded_scales *s, int weight, const float *factor, size_t cols)
{
    s->col[weight] = copy_of(factor, cols);
    return s->col[weight] != NULL;
}

static bool remember(ft_folded_scales *s, const ft_scale_fold *fold, const float *factor)
{
    ft_folded_value *v = &s->value[s->count];
    *v = (ft_folded_value){ .name = s->model->graph.value[fold->value].name,
                            .cols = fold->cols,
                            .factor = copy_of(factor, fold->cols) };
    s->count += v->factor != NULL;
    return v->factor != NULL;
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
                   divide_vector(s, fold->bias, fold, factor) && remember(s, fold, factor);
    for (int i = 0; i < graph->nop && success; i++)
        if (graph->op[i].in[0] == fold->value)
            success = multiply_columns(s, graph->op[i].weight[0], factor, fold->cols);
    return success ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory for factors", s->model->path);
}

/* ---- Writing ------------------------------------------------------------------------------ */

static ft_status produce_factors(void *user, void *buffer, size_t bytes, size_t *produced,
                                 ft_error *err)
{
    ft_folded_value *v = user;
    (void) err;
    *produced = ft_min_size(bytes, v->cols * sizeof *v->factor - v->delivered);
    memcpy(buffer, (const char *) v->factor + v->delivered, *produced);
    v->delivered += *produced;
    return FT_OK;
}

static ft_status write_value(ft_folded_value *v, ft_artifact_writer *writer, ft_error *err)
{
    char name[FT_NAME + sizeof FT_FOLDED_SUFFIX];
    snprintf(name, sizeof name, "%s" FT_FOLDED_SUFFIX, v->name);
    v->delivered = 0;
    const ft_artifact_tensor tensor = { .name = name,
                                        .role = FT_FOLDED_ROLE,
                                        .dtype = FT_F32,
                                        .layout = FT_ROW,
                                        .ndim = 1,
                                        .dim = { (int64_t) v->cols } };
    return ft_artifact_add_tensor(writer, &tensor, produce_factors, v, err);
}

ft_status ft_folded_scales_write(ft_folded_scales *s, ft_artifact_writer *writer, ft_error *err)
{
    for (size_t i = 0; i < s->count; i++)
        FT_TRY(write_value(&s->value[i], writer, err));
    return FT_OK;
}

ft_status ft_folded_scales_require(json_t **required, const ft_folded_scales *s, ft_error *err)
{
    if (s != NULL && s->count > 0)
        return ft_features_add(required, *required, FT_FEATURE_FOLDED, err);
    json_incref(*required);
    return FT_OK;
}
