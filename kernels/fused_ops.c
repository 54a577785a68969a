/*
 * fused_ops.c - which neighbouring operations may be performed as one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/fused_ops.h"

/* Where the part of the plan ends that operation `op` is in: no run has operations of both. */
static int end_of_part(const ft_plan *plan, int op)
{
    return op < plan->source_ops ? plan->source_ops : plan->nop;
}

static bool reads(const ft_op *op, int value)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] == value)
            return true;
    return false;
}

/* Whether all that reads a value are operations first .. end - 1. */
static bool is_read_within(const ft_plan *plan, int value, int first, int end)
{
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return false;
    for (int i = 0; i < plan->nop; i++)
        if ((i < first || i >= end) && reads(&plan->op[i], value))
            return false;
    return !plan->value[value].keep;
}

static bool is_linear(const ft_op *op)
{
    return op->kind == FT_OP_LINEAR && op->weight[0] >= 0;
}

/* Linears of one input and one shape, as queries, keys and values are. */
static bool belong_together(const ft_plan *plan, const ft_op *a, const ft_op *b)
{
    if (!is_linear(b) || b->in[0] != a->in[0])
        return false;
    const ft_weight *w = &plan->weight[a->weight[0]], *v = &plan->weight[b->weight[0]];
    return w->cols == v->cols && w->dtype == v->dtype && a->attr.activation == b->attr.activation &&
           (a->codes < 0) == (b->codes < 0) && (a->weight[1] < 0) == (b->weight[1] < 0);
}

static int linears_at(const ft_plan *plan, int first)
{
    int count = is_linear(&plan->op[first]), end = end_of_part(plan, first);
    while (count > 0 && count < FT_CHAIN_LINEARS && first + count < end &&
           belong_together(plan, &plan->op[first], &plan->op[first + count]))
        count++;
    return count;
}

/* Whether the norm's result is made for nobody but the linears behind it. */
static bool feeds(const ft_plan *plan, int norm, int linears)
{
    const ft_op *op = &plan->op[norm];
    return plan->steady && op->kind == FT_OP_NORM && op->out >= 0 && op->codes < 0 && linears > 0 &&
           plan->op[norm + 1].in[0] == op->out &&
           is_read_within(plan, op->out, norm + 1, norm + 1 + linears);
}

/* Whether a gate behind two linears is all that reads their results. */
static bool gates(const ft_plan *plan, int first, int linears)
{
    int at = first + linears;
    if (!plan->steady || linears != 2 || at >= end_of_part(plan, first))
        return false;
    const ft_op *a = &plan->op[first], *b = &plan->op[first + 1], *gate = &plan->op[at];
    return gate->kind == FT_OP_GATE && gate->codes < 0 && gate->in[0] == a->out &&
           gate->in[1] == b->out && a->attr.activation == FT_ACT_NONE &&
           is_read_within(plan, a->out, at, at + 1) && is_read_within(plan, b->out, at, at + 1);
}

/* Whether the attention behind a store is all that reads its queries. */
static bool turns(const ft_plan *plan, int store)
{
    const ft_op *op = &plan->op[store], *next = op + 1;
    return plan->steady && op->kind == FT_OP_STORE && op->out >= 0 && !op->attr.memory &&
           store + 1 < end_of_part(plan, store) && next->kind == FT_OP_ATTEND &&
           !next->attr.memory && next->in[0] == op->out &&
           next->state[FT_STATE_KEYS] == op->state[FT_STATE_KEYS] &&
           is_read_within(plan, op->out, store + 1, store + 2);
}

ft_chain ft_chain_at(const ft_plan *plan, int first)
{
    int linears = linears_at(plan, first), behind = 0;
    bool norm = false;
    if (linears == 0 && first + 1 < end_of_part(plan, first))
        behind = linears_at(plan, first + 1);
    if (feeds(plan, first, behind)) {
        norm = true;
        linears = behind;
    }
    if (linears > 0) {
        bool gate = gates(plan, first + norm, linears);
        return (ft_chain){ FT_CHAIN_PRODUCT, first, norm + linears + gate, norm, gate };
    }
    if (turns(plan, first))
        return (ft_chain){ .kind = FT_CHAIN_ATTENTION, .first = first, .count = 2 };
    return (ft_chain){ .kind = FT_CHAIN_ALONE, .first = first, .count = 1 };
}
