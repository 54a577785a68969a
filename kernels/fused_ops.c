/*
 * fused_ops.c - which neighbouring operations may be performed as one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/fused_ops.h"

/* Where the part of the plan ends that operation `op` is in: no run has operations of both. */
static int end_of_stack(const ft_plan *plan, int op)
{
    return op < plan->encoder_ops ? plan->encoder_ops : plan->nop;
}

static bool reads_value(const ft_op *op, int value)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] == value)
            return true;
    return false;
}

/* Whether all that reads a value are operations first .. end - 1. */
static bool is_only_read_by(const ft_plan *plan, int value, int first, int end)
{
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return false;
    for (int i = 0; i < plan->nop; i++)
        if ((i < first || i >= end) && reads_value(&plan->op[i], value))
            return false;
    return !plan->value[value].keep;
}

static bool is_linear(const ft_op *op)
{
    return op->kind == FT_OP_LINEAR && op->weight[0] >= 0;
}

/* Linears of one input and one shape, as queries, keys and values are. */
static bool same_input_and_shape(const ft_plan *plan, const ft_op *a, const ft_op *b)
{
    if (!is_linear(b) || b->in[0] != a->in[0])
        return false;
    const ft_weight *w = &plan->weight[a->weight[0]], *v = &plan->weight[b->weight[0]];
    return w->cols == v->cols && w->dtype == v->dtype && a->attr.activation == b->attr.activation &&
           (a->codes < 0) == (b->codes < 0) && (a->weight[1] < 0) == (b->weight[1] < 0);
}

static int linears_at(const ft_plan *plan, int first)
{
    int count = is_linear(&plan->op[first]), end = end_of_stack(plan, first);
    while (count > 0 && count < FT_FUSION_MAX_LINEARS && first + count < end &&
           same_input_and_shape(plan, &plan->op[first], &plan->op[first + count]))
        count++;
    return count;
}

/* Whether the norm's result is made for nobody but the linears behind it. */
static bool norm_feeds_linears(const ft_plan *plan, int norm, int linears)
{
    const ft_op *op = &plan->op[norm];
    return plan->batch_invariant && op->kind == FT_OP_NORM && op->out >= 0 && op->codes < 0 &&
           linears > 0 && plan->op[norm + 1].in[0] == op->out &&
           is_only_read_by(plan, op->out, norm + 1, norm + 1 + linears);
}

/* Whether a gate behind two linears is all that reads their results. */
static bool gate_follows_linears(const ft_plan *plan, int first, int linears)
{
    int at = first + linears;
    if (!plan->batch_invariant || linears != 2 || at >= end_of_stack(plan, first))
        return false;
    const ft_op *a = &plan->op[first], *b = &plan->op[first + 1], *gate = &plan->op[at];
    return gate->kind == FT_OP_GATE && gate->codes < 0 && gate->in[0] == a->out &&
           gate->in[1] == b->out && a->attr.activation == FT_ACT_NONE &&
           is_only_read_by(plan, a->out, at, at + 1) && is_only_read_by(plan, b->out, at, at + 1);
}

/* Whether the attention behind a store is all that reads its queries. */
static bool rope_feeds_attention(const ft_plan *plan, int store)
{
    const ft_op *op = &plan->op[store], *next = op + 1;
    return plan->batch_invariant && op->kind == FT_OP_STORE_KV && op->out >= 0 &&
           !op->attr.cross_kv && store + 1 < end_of_stack(plan, store) &&
           next->kind == FT_OP_ATTEND_KV && !next->attr.cross_kv && next->in[0] == op->out &&
           next->state[FT_STATE_KEYS] == op->state[FT_STATE_KEYS] &&
           is_only_read_by(plan, op->out, store + 1, store + 2);
}

ft_fusion ft_fusion_at(const ft_plan *plan, int first)
{
    int linears = linears_at(plan, first), next_linears = 0;
    bool norm = false;
    if (linears == 0 && first + 1 < end_of_stack(plan, first))
        next_linears = linears_at(plan, first + 1);
    if (norm_feeds_linears(plan, first, next_linears)) {
        norm = true;
        linears = next_linears;
    }
    if (linears > 0) {
        bool gate = gate_follows_linears(plan, first + norm, linears);
        return (ft_fusion){ FT_FUSION_LINEARS, first, norm + linears + gate, norm, gate };
    }
    if (rope_feeds_attention(plan, first))
        return (ft_fusion){ .kind = FT_FUSION_ATTENTION, .first = first, .count = 2 };
    return (ft_fusion){ .kind = FT_FUSION_NONE, .first = first, .count = 1 };
}
