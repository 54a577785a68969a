/*
 * column_scales.c - how the columns of a quantized model's values differ from the float model's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/column_scales.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* The divisors of a value that is quantized: folded factors times smoothing factors. */
static ft_status join(ft_column_scales *s, int value, ft_error *err)
{
    const ft_value *v = &s->model->graph.value[value];
    int weight = ft_plan_find_smoothing(&s->model->graph, v->name);
    const float *smoothing = weight >= 0 ? s->model->weight[weight].data : NULL;
    const float *folded = s->folded.divisor[value];
    if (smoothing == NULL && folded == NULL)
        return FT_OK;
    float *out = s->quantized[value] = ft_calloc((size_t) v->cols, sizeof *out);
    if (out == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %d factors", s->model->path, v->cols);
    for (int32_t i = 0; i < v->cols; i++)
        out[i] = (folded != NULL ? folded[i] : 1.0f) / (smoothing != NULL ? smoothing[i] : 1.0f);
    return FT_OK;
}

ft_status ft_column_scales_init(ft_column_scales *s, const ft_model *model, ft_error *err)
{
    *s = (ft_column_scales){ .model = model };
    FT_TRY(ft_folded_read(&s->folded, model, err));
    s->quantized = ft_calloc((size_t) model->graph.nvalue, sizeof *s->quantized);
    if (s->quantized == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for factors", model->path);
    for (int i = 0; i < model->graph.nvalue; i++)
        FT_TRY(join(s, i, err));
    return FT_OK;
}

void ft_column_scales_fini(ft_column_scales *s)
{
    for (int i = 0; s->quantized != NULL && i < s->model->graph.nvalue; i++)
        free(s->quantized[i]);
    free(s->quantized);
    ft_folded_fini(&s->folded);
    *s = (ft_column_scales){ 0 };
}

/* The value of the graph of which a value of the plan is a form, or -1. */
static int find_form(const ft_plan *graph, const char *name)
{
    static const char *const suffix[] = { "", ".float", ".back" };
    int value = -1;
    for (size_t i = 0; i < FT_COUNT(suffix) && value < 0; i++) {
        char base[FT_NAME];
        if (!ft_ends_with(name, suffix[i]))
            continue;
        snprintf(base, sizeof base, "%.*s", (int) (strlen(name) - strlen(suffix[i])), name);
        value = ft_plan_find(graph, base);
    }
    return value;
}

const float *ft_column_scales_of_value(const ft_column_scales *s, const char *name)
{
    int value = find_form(&s->model->graph, name);
    return value >= 0 ? s->folded.divisor[value] : NULL;
}

const float *ft_column_scales_of_point(const ft_column_scales *s, const char *name)
{
    int value = ft_plan_find(&s->model->graph, name);
    return value >= 0 ? s->quantized[value] : NULL;
}

ft_weight_rescaling ft_column_scales_of_matrix(const ft_column_scales *s, int index)
{
    const ft_plan *graph = &s->model->graph;
    for (int i = 0; i < graph->nop; i++) {
        const ft_op *op = &graph->op[i];
        if (op->kind == FT_OP_LINEAR && op->weight[0] == index)
            return (ft_weight_rescaling){ .row = s->folded.divisor[op->out],
                                          .col = s->quantized[op->in[0]] };
    }
    return (ft_weight_rescaling){ .row = NULL };
}
