/*
 * scale_fold.c - which values of a graph can be scaled through their producer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/scale_fold.h"

#include "runtime/graph/plan.h"

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

static bool is_foldable_linear(const ft_plan *graph, const ft_op *op, const bool *may_change)
{
    return op->kind == FT_OP_LINEAR && op->attr.activation == FT_ACT_NONE &&
           (may_change == NULL || may_change[op->weight[0]]) &&
           has_single_use(graph, op->weight[0]) && has_single_use(graph, op->weight[1]);
}

/* Whether all readers of a value are linears that may be changed. */
static bool only_linears_read(const ft_plan *graph, int value, const bool *may_change)
{
    int linears = 0;
    for (int i = 0; i < graph->nop; i++)
        linears +=
            graph->op[i].in[0] == value && is_foldable_linear(graph, &graph->op[i], may_change);
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
                           const bool *may_change)
{
    int producer_op = value < 0 ? -1 : ft_plan_producer(graph, value);
    const ft_op *producer = producer_op < 0 ? NULL : &graph->op[producer_op];
    if (producer == NULL || ft_plan_uses(graph, value) != 1 ||
        !is_foldable_linear(graph, producer, may_change) ||
        !is_f32_vector(graph, producer->weight[1]))
        return false;
    out->producer = producer->weight[0];
    out->produced = value;
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
                             const bool *may_change)
{
    bool is_cached = op->kind == FT_OP_ATTEND_KV;
    out->heads = (size_t) op->attr.heads;
    out->kv_heads = is_cached ? (size_t) op->attr.kv_heads : out->heads;
    return fold_into_rows(out, graph, is_cached ? stored_values(graph, op) : op->in[2], may_change);
}

bool ft_scale_fold_find(ft_scale_fold *out, const ft_plan *graph, int value, const bool *may_change)
{
    int producer_op = ft_plan_producer(graph, value);
    *out = (ft_scale_fold){ .value = value,
                            .cols = (size_t) graph->value[value].cols,
                            .norm = { -1, -1 },
                            .producer = -1,
                            .bias = -1,
                            .produced = -1 };
    if (producer_op < 0 || !only_linears_read(graph, value, may_change))
        return false;
    const ft_op *op = &graph->op[producer_op];
    switch (op->kind) {
    case FT_OP_NORM:
        return fold_into_norm(out, graph, op);
    case FT_OP_GATE:
        return fold_into_rows(out, graph, op->in[1], may_change);
    case FT_OP_ACTIVATE:
        return op->attr.activation == FT_ACT_RELU &&
               fold_into_rows(out, graph, op->in[0], may_change);
    case FT_OP_ATTENTION:
    case FT_OP_ATTEND_KV:
        return fold_into_values(out, graph, op, may_change);
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

size_t ft_scale_fold_first(const ft_scale_fold *fold, size_t col)
{
    if (fold->heads == fold->kv_heads)
        return col;
    size_t head_size = fold->cols / fold->heads;
    size_t sharing = head_size * (fold->heads / fold->kv_heads);
    return col / sharing * sharing + col % head_size;
}
