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

static int uses_of_weight(const ft_plan *graph, int weight)
{
    int uses = 0;
    for (int i = 0; i < graph->nop; i++)
        for (int j = 0; j < FT_MAX_WEIGHTS; j++)
            uses += graph->op[i].weight[j] == weight;
    return uses;
}

/* Whether only one operation uses a weight, so that it may be changed. */
static bool is_private(const ft_plan *graph, int weight)
{
    return weight < 0 || uses_of_weight(graph, weight) == 1;
}

static bool is_private_linear(const ft_plan *graph, const ft_op *op, const bool *in_blocks)
{
    return op->kind == FT_OP_LINEAR && op->attr.activation == FT_ACT_NONE &&
           in_blocks[op->weight[0]] && is_private(graph, op->weight[0]) &&
           is_private(graph, op->weight[1]);
}

/* Whether all readers of a value are linears that may be changed. */
static bool is_for_linears(const ft_plan *graph, int value, const bool *in_blocks)
{
    int linears = 0;
    for (int i = 0; i < graph->nop; i++)
        linears +=
            graph->op[i].in[0] == value && is_private_linear(graph, &graph->op[i], in_blocks);
    return linears > 0 && linears == ft_plan_uses(graph, value);
}

/* A float32 vector, which can be divided without further rounding. */
static bool is_vector(const ft_plan *graph, int weight)
{
    return weight < 0 || graph->weight[weight].dtype == FT_F32;
}

static bool fold_into_norm(ft_fold *out, const ft_plan *graph, const ft_op *op)
{
    for (int i = 0; i < 2; i++) {
        out->norm[i] = op->weight[i];
        if (!is_private(graph, op->weight[i]) || !is_vector(graph, op->weight[i]))
            return false;
    }
    return true;
}

/* Folds into the rows of the linear that produces `value`, which must have a single reader. */
static bool fold_into_rows(ft_fold *out, const ft_plan *graph, int value, const bool *in_blocks)
{
    int made_by = value < 0 ? -1 : ft_plan_producer(graph, value);
    const ft_op *maker = made_by < 0 ? NULL : &graph->op[made_by];
    if (maker == NULL || ft_plan_uses(graph, value) != 1 ||
        !is_private_linear(graph, maker, in_blocks) || !is_vector(graph, maker->weight[1]))
        return false;
    out->maker = maker->weight[0];
    out->bias = maker->weight[1];
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
        bool there = (other->kind == FT_OP_STORE || other->kind == FT_OP_ATTEND) &&
                     other->state[FT_STATE_VALUES] == op->state[FT_STATE_VALUES];
        if (there && other->kind == FT_OP_STORE)
            value = other->in[2];
        if (there && other->kind == FT_OP_ATTEND && other != op)
            return -1;
    }
    return value;
}

static bool fold_into_values(ft_fold *out, const ft_plan *graph, const ft_op *op,
                             const bool *in_blocks)
{
    bool cached = op->kind == FT_OP_ATTEND;
    out->heads = (size_t) op->attr.heads;
    out->kv_heads = cached ? (size_t) op->attr.kv_heads : out->heads;
    return fold_into_rows(out, graph, cached ? stored_values(graph, op) : op->in[2], in_blocks);
}

bool ft_fold_find(ft_fold *out, const ft_plan *graph, int value, const bool *in_blocks)
{
    int made_by = ft_plan_producer(graph, value);
    *out = (ft_fold){ .value = value,
                      .cols = (size_t) graph->value[value].cols,
                      .norm = { -1, -1 },
                      .maker = -1,
                      .bias = -1 };
    if (made_by < 0 || !is_for_linears(graph, value, in_blocks))
        return false;
    const ft_op *op = &graph->op[made_by];
    switch (op->kind) {
    case FT_OP_NORM:
        return fold_into_norm(out, graph, op);
    case FT_OP_GATE:
        return fold_into_rows(out, graph, op->in[1], in_blocks);
    case FT_OP_ACTIVATE:
        return op->attr.activation == FT_ACT_RELU &&
               fold_into_rows(out, graph, op->in[0], in_blocks);
    case FT_OP_ATTENTION:
    case FT_OP_ATTEND:
        return fold_into_values(out, graph, op, in_blocks);
    default:
        return false;
    }
}

size_t ft_fold_row(const ft_fold *fold, size_t col)
{
    if (fold->heads == fold->kv_heads)
        return col;
    size_t size = fold->cols / fold->heads, sharing = fold->heads / fold->kv_heads;
    return col / size / sharing * size + col % size;
}

/* ---- Factors ----------------------------------------------------------------------------- */

ft_status ft_scaling_init(ft_scaling *s, const ft_model *model, ft_error *err)
{
    size_t count = (size_t) model->nweight;
    *s = (ft_scaling){ .model = model };
    s->row = ft_array(count, sizeof(float *));
    s->col = ft_array(count, sizeof(float *));
    s->vector = ft_array(count, sizeof(float *));
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

void ft_scaling_fini(ft_scaling *s)
{
    int count = s->model != NULL ? s->model->nweight : 0;
    free_all(s->row, count);
    free_all(s->col, count);
    free_all(s->vector, count);
    *s = (ft_scaling){ 0 };
}

static bool multiply_columns(ft_scaling *s, int weight, const float *factor, size_t cols)
{
    float *copy = s->col[weight] = ft_array(cols, sizeof *copy);
    if (copy != NULL)
        memcpy(copy, factor, cols * sizeof *copy);
    return copy != NULL;
}

static bool divide_vector(ft_scaling *s, int weight, const ft_fold *fold, const float *factor)
{
    if (weight < 0)
        return true;
    const ft_weight *from = &s->model->weight[weight];
    const ft_artifact_tensor *stored = ft_artifact_find(s->model->artifact, from->name);
    const float *data = stored->data; /* the model's own copy may be on a device */
    float *out = s->vector[weight] = ft_array(from->cols, sizeof *out);
    for (size_t col = 0; col < fold->cols && out != NULL; col++) {
        size_t at = ft_fold_row(fold, col);
        out[at] = data[at] / factor[col];
    }
    return out != NULL;
}

static bool divide_rows(ft_scaling *s, const ft_fold *fold, const float *factor)
{
    if (fold->maker < 0)
        return true;
    float *out = s->row[fold->maker] = ft_array(s->model->weight[fold->maker].rows, sizeof *out);
    for (size_t col = 0; col < fold->cols && out != NULL; col++)
        out[ft_fold_row(fold, col)] = 1.0f / factor[col];
    return out != NULL;
}

ft_status ft_scaling_add(ft_scaling *s, const ft_fold *fold, const float *factor, ft_error *err)
{
    const ft_plan *graph = &s->model->graph;
    bool fine = divide_vector(s, fold->norm[0], fold, factor) &&
                divide_vector(s, fold->norm[1], fold, factor) && divide_rows(s, fold, factor) &&
                divide_vector(s, fold->bias, fold, factor);
    for (int i = 0; i < graph->nop && fine; i++)
        if (graph->op[i].in[0] == fold->value)
            fine = multiply_columns(s, graph->op[i].weight[0], factor, fold->cols);
    return fine ? FT_OK : ft_fail(err, FT_ENOMEM, "%s: no memory for factors", s->model->path);
}
