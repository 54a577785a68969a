/*
 * folded.c - the factors that calibration folded into a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/folded.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/graph/scale_fold.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static bool is_folded(const ft_artifact_tensor *tensor)
{
    return strcmp(tensor->role, FT_FOLDED_ROLE) == 0;
}

size_t ft_folded_count(const ft_artifact *artifact)
{
    size_t count = 0;
    for (size_t i = 0; i < ft_artifact_count(artifact); i++)
        count += is_folded(ft_artifact_at(artifact, i));
    return count;
}

/* ---- Checks ------------------------------------------------------------------------------- */

static bool all_valid(const float *factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(factor[i] >= FT_SMOOTHING_MIN && factor[i] <= 1.0f / FT_SMOOTHING_MIN))
            return false;
    return true;
}

static ft_status check_vector(const ft_model *model, const ft_artifact_tensor *tensor,
                              ft_error *err)
{
    if (tensor->dtype != FT_F32 || tensor->layout != FT_ROW || tensor->ndim != 1 ||
        !ft_ends_with(tensor->name, FT_FOLDED_SUFFIX))
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: folded factors are an F32 vector named VALUE" FT_FOLDED_SUFFIX,
                       model->path, tensor->name);
    if (!all_valid(tensor->data, (size_t) tensor->dim[0]))
        return ft_fail(err, FT_EFORMAT, "%s: %s: elements are not between %g and %g", model->path,
                       tensor->name, (double) FT_SMOOTHING_MIN, 1.0 / (double) FT_SMOOTHING_MIN);
    return FT_OK;
}

/* Finds the value that factors belong to and how it is scaled. */
static bool find_fold(ft_scale_fold *fold, const ft_plan *graph, const ft_artifact_tensor *tensor)
{
    char name[FT_ARTIFACT_NAME_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int) (strlen(tensor->name) - strlen(FT_FOLDED_SUFFIX)),
             tensor->name);
    int value = ft_plan_find(graph, name);
    return value >= 0 && ft_scale_fold_find(fold, graph, value, NULL);
}

/* Columns that come from one row of the producer have one factor. */
static bool fits_rows(const ft_scale_fold *fold, const float *factor)
{
    for (size_t col = 0; col < fold->cols; col++) {
        float first = factor[ft_scale_fold_first(fold, col)];
        if (factor[col] < first || factor[col] > first)
            return false;
    }
    return true;
}

static ft_status check_fold(const ft_model *model, const ft_artifact_tensor *tensor, ft_error *err)
{
    ft_scale_fold fold;
    FT_TRY(check_vector(model, tensor, err));
    if (!find_fold(&fold, &model->graph, tensor) || fold.cols != (size_t) tensor->dim[0])
        return ft_fail(err, FT_EFORMAT,
                       "%s: %s: has %lld elements, but is no value of that width that its producer "
                       "can scale",
                       model->path, tensor->name, (long long) tensor->dim[0]);
    if (!fits_rows(&fold, tensor->data))
        return ft_fail(err, FT_EFORMAT, "%s: %s: columns of one row have different factors",
                       model->path, tensor->name);
    return FT_OK;
}

ft_status ft_folded_check(const ft_model *model, ft_error *err)
{
    for (size_t i = 0; model->artifact != NULL && i < ft_artifact_count(model->artifact); i++)
        if (is_folded(ft_artifact_at(model->artifact, i)))
            FT_TRY(check_fold(model, ft_artifact_at(model->artifact, i), err));
    return FT_OK;
}

/* ---- Reading ------------------------------------------------------------------------------ */

static float *new_divisors(ft_folded *out, const ft_plan *graph, int value)
{
    return out->divisor[value] = ft_calloc((size_t) graph->value[value].cols, sizeof(float));
}

static ft_status read_fold(ft_folded *out, const ft_model *model, const ft_artifact_tensor *tensor,
                           ft_error *err)
{
    ft_scale_fold fold;
    if (!find_fold(&fold, &model->graph, tensor))
        return FT_OK; /* refused when the model was opened */
    float *divisor = new_divisors(out, &model->graph, fold.value);
    float *row = fold.produced < 0 ? divisor : new_divisors(out, &model->graph, fold.produced);
    if (divisor == NULL || row == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu factors", model->path, fold.cols);
    memcpy(divisor, tensor->data, fold.cols * sizeof *divisor);
    for (size_t col = 0; col < fold.cols; col++)
        row[ft_scale_fold_row(&fold, col)] = divisor[col];
    return FT_OK;
}

ft_status ft_folded_read(ft_folded *out, const ft_model *model, ft_error *err)
{
    *out = (ft_folded){ .nvalue = model->graph.nvalue };
    out->divisor = ft_calloc((size_t) out->nvalue, sizeof *out->divisor);
    if (out->divisor == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for factors", model->path);
    for (size_t i = 0; model->artifact != NULL && i < ft_artifact_count(model->artifact); i++)
        if (is_folded(ft_artifact_at(model->artifact, i)))
            FT_TRY(read_fold(out, model, ft_artifact_at(model->artifact, i), err));
    return FT_OK;
}

void ft_folded_fini(ft_folded *folded)
{
    for (int i = 0; i < folded->nvalue && folded->divisor != NULL; i++)
        free(folded->divisor[i]);
    free(folded->divisor);
    *folded = (ft_folded){ 0 };
}
