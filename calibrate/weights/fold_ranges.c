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

/* ---- Which folds are exact --------------------------------------------------------------- */

static int weight_uses(const ft_plan *graph, int weight)
{
    int uses = 0;
    for (int i = 0; i < graph->nop; i++)
        for (int j = 0; j < FT_MAX_WEIGHTS; j++)
            uses += graph->op[i].weight[j] == weight;
    return uses;
}

/* Whether only one operation uses a weight, so that it may be changed. */
static bool has_single_use(const ft_plan *graph, int weight)
{
    return weight < 0 || weight_uses(graph, weight) == 1;
}

static bool is_foldable_linear(const ft_plan *graph, const ft_op *op, const bool *is_groupwise)
{
    return op->kind == FT_OP_LINEAR && op->attr.activation == FT_ACT_NONE &&
           is_groupwise[op->weight[0]] && has_single_use(graph, op->weight[0]) &&
           has_single_use(graph, op->weight[1]);
}

/* Whether all readers of a value are linears that may be changed. */
static bool only_linears_read(const ft_plan *graph, int value, const bool *is_groupwise)
{
    int linears = 0;
    for (int i = 0; i < graph->nop; i++)
        linears +=
            graph->op[i].in[0] == value && is_foldable_linear(graph, &graph->op[i], is_groupwise);
    return linears > 0 && linears == ft_plan_uses(graph, value);
}

/* A float32 vector, which can be divided without further rounding. */
static bool is_f32_vector(const ft_plan *graph, int weight)
{
    return weight < 0 || graph->weight[weight].dtype == FT_F32;
}

static bool fold_into_norm(ft_scale_fold *out, const ft_plan *graph, const ft_op *op)
{
    for (int i = 0; i < 2; i++) {
        out->norm[i] = op->weight[i];
        if (!has_single_use(graph, op->weight[i]) || !is_f32_vector(graph, op->weight[i]))
            return false;
    }
    return true;
}

/* Folds into the rows of the linear that produces `value`, which must have a single reader. */
static bool fold_into_rows(ft_scale_fold *out, const ft_plan *graph, int value,
                           const bool *is_groupwise)
{
    int producer_op = value < 0 ? -1 : ft_plan_producer(graph, value);
    const ft_op *producer = producer_op < 0 ? NULL : &graph->op[producer_op];
    if (producer == NULL || ft_plan_uses(graph, value) != 1 ||
        !is_foldable_linear(graph, producer, is_groupwise) ||
        !is_f32_vector(graph, producer->weight[1]))
        return false;
    out->producer = producer->weight[0];
    out->bias = producer->weight[1];
    return true;
}

/*
 * The value that is stored in the KV cache that ATTEND_KV `op` reads; -1 if other operations read
 * the same cache.
 */
static int stored_values(const ft_plan *graph, const ft_op *op)
{
    int value = -1;
    for (int i = 0; i < graph->nop; i++) {
        const ft_op *other = &graph->op[i];
        bool same_cache = ft_op_uses_cache(other->kind) &&
                          other->state[FT_STATE_VALUES] == op->state[FT_STATE_VALUES];
        if (same_cache && other->kind == FT_OP_STORE_KV)
            value = other->in[2];
        if (same_cache && other->kind == FT_OP_ATTEND_KV && other != op)
            return -1;
    }
    return value;
}

static bool fold_into_values(ft_scale_fold *out, const ft_plan *graph, const ft_op *op,
                             const bool *is_groupwise)
{
    bool is_cached = op->kind == FT_OP_ATTEND_KV;
    out->heads = (size_t) op->attr.heads;
    out->kv_heads = is_cached ? (size_t) op->attr.kv_heads : out->heads;
    return fold_into_rows(out, graph, is_cached ? stored_values(graph, op) : op->in[2],
                          is_groupwise);
}

bool ft_scale_fold_find(ft_scale_fold *out, const ft_plan *graph, int value,
                        const bool *is_groupwise)
{
    int producer_op = ft_plan_producer(graph, value);
    *out = (ft_scale_fold){ .value = value,
                            .cols = (size_t) graph->value[value].cols,
                            .norm = { -1, -1 },
                            .producer = -1,
                            .bias = -1 };
    if (producer_op < 0 || !only_linears_read(graph, value, is_groupwise))
        return false;
    const ft_op *op = &graph->op[producer_op];
    switch (op->kind) {
    case FT_OP_NORM:
        return fold_into_norm(out, graph, op);
    case FT_OP_GATE:
        return fold_into_rows(out, graph, op->in[1], is_groupwise);
    case FT_OP_ACTIVATE:
        return op->attr.activation == FT_ACT_RELU &&
               fold_into_rows(out, graph, op->in[0], is_groupwise);
    case FT_OP_ATTENTION:
    case FT_OP_ATTEND_KV:
        return fold_into_values(out, graph, op, is_groupwise);
    default:
        return false;
    }
}

size_t ft_scale_fold_row(const ft_scale_fold *fold, size_t col)
{
    if (fold->heads == fold->kv_heads)
        return col;
    size_t head_size = fold->cols / fold->heads, heads_per_kv = fold->heads / fold->kv_heads;
    return col / head_size / heads_per_kv * head_size + col % head_size;
}

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
