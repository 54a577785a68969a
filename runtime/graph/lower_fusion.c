/*
 * lower_fusion.c - forms the fusion groups of a plan: neighbouring operations that a device may run
 * as one kernel.
 *
 * Only this file decides which operations form a group.  A device that has no kernel for a group
 * runs its operations one by one.
 *
 * All plans group linears that share their input.  Only decoders, whose decode steps have few rows,
 * add the norm or QUANTIZE before them, and the gate and its linear after them, and group STORE_KV
 * with ATTEND_KV.  In encoders such
 * groups would only cost memory, because the values of a group must not overlap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/lower_passes.h"

#include "kernels/fused_ops.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* End of the operations of one forward pass: those of the encoder or those of the decoder. */
static int end_of_stack(const ft_plan *plan, int op)
{
    return op < plan->encoder_ops ? plan->encoder_ops : plan->nop;
}

/* Whether only operations first .. end - 1 read a value. */
static bool is_read_within(const ft_plan *plan, int value, int first, int end)
{
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return false;
    for (int i = 0; i < plan->nop; i++)
        if ((i < first || i >= end) && ft_op_reads(&plan->op[i], value))
            return false;
    return !plan->value[value].keep;
}

/* ---- Linears ------------------------------------------------------------------------------ */

static bool is_linear(const ft_op *op)
{
    return op->kind == FT_OP_LINEAR && op->weight[0] >= 0;
}

/* Whether two linears, such as Q and K projections, share the input and the kind of weights. */
static bool can_batch(const ft_plan *plan, const ft_op *a, const ft_op *b)
{
    if (!is_linear(b) || b->in[0] != a->in[0])
        return false;
    const ft_weight *w = &plan->weight[a->weight[0]], *v = &plan->weight[b->weight[0]];
    return w->cols == v->cols && w->dtype == v->dtype && a->attr.activation == b->attr.activation &&
           (a->quantized < 0) == (b->quantized < 0) && (a->weight[1] < 0) == (b->weight[1] < 0);
}

static int count_linears(const ft_plan *plan, int first)
{
    int count = is_linear(&plan->op[first]), end = end_of_stack(plan, first);
    while (count > 0 && count < FT_GROUP_LINEARS && first + count < end &&
           can_batch(plan, &plan->op[first], &plan->op[first + count]))
        count++;
    return count;
}

/* The only result of an operation besides a sum: a float or quantized value; -1 where it has both.
 */
static int single_result(const ft_op *op)
{
    return op->quantized < 0 ? op->out : op->out < 0 ? op->quantized : -1;
}

/* Whether an operation of this kind precedes linears that alone read its result. */
static bool has_input(const ft_plan *plan, ft_op_kind kind, int first, int linears)
{
    const ft_op *op = &plan->op[first];
    int value = single_result(op);
    return op->kind == kind && linears > 0 && value >= 0 &&
           (op->quantized < 0 || plan->value[value].dynamic) &&
           plan->op[first + 1].in[0] == value &&
           is_read_within(plan, value, first + 1, first + 1 + linears);
}

/* Whether only the gate after two linears reads their results. */
static bool has_gate(const ft_plan *plan, int first, int linears)
{
    int at = first + linears;
    if (linears != 2 || at >= end_of_stack(plan, first))
        return false;
    const ft_op *a = &plan->op[first], *b = &plan->op[first + 1], *gate = &plan->op[at];
    return gate->kind == FT_OP_GATE && gate->in[0] == a->out && gate->in[1] == b->out &&
           a->attr.activation == FT_ACT_NONE && is_read_within(plan, a->out, at, at + 1) &&
           is_read_within(plan, b->out, at, at + 1);
}

/* Whether only the linear after a gate reads its result, with row scales. */
static bool has_down(const ft_plan *plan, int gate)
{
    const ft_op *op = &plan->op[gate];
    return op->quantized >= 0 && op->out < 0 && plan->value[op->quantized].dynamic &&
           gate + 1 < end_of_stack(plan, gate) && is_linear(op + 1) &&
           op[1].in[0] == op->quantized && is_read_within(plan, op->quantized, gate + 1, gate + 2);
}

/*
 * The linears at `first`, or after a norm or QUANTIZE at `first`; count 0: none. A gate with a
 * quantized result belongs to them if the linear that reads it does, too.
 */
static ft_fusion_group linear_group_at(const ft_plan *plan, int first, bool decoder)
{
    ft_fusion_group group = { .kind = FT_FUSION_LINEAR, .first = first };
    int linears = count_linears(plan, first), after_input = 0;
    if (decoder && linears == 0 && first + 1 < end_of_stack(plan, first))
        after_input = count_linears(plan, first + 1);
    group.norm = has_input(plan, FT_OP_NORM, first, after_input);
    group.quantize = has_input(plan, FT_OP_QUANTIZE, first, after_input);
    if (group.norm || group.quantize)
        linears = after_input;
    int end = ft_group_first_linear(&group) + linears;
    group.gate = decoder && has_gate(plan, end - linears, linears);
    group.down = group.gate && has_down(plan, end);
    if (group.gate && !group.down)
        group.gate = plan->op[end].quantized < 0;
    group.count = end + group.gate + group.down - first;
    return group;
}

/* ---- Attention ---------------------------------------------------------------------------- */

/* Whether only the attention after a STORE_KV reads its queries. */
static bool is_attention_at(const ft_plan *plan, int store)
{
    const ft_op *op = &plan->op[store], *next = op + 1;
    return op->kind == FT_OP_STORE_KV && op->out >= 0 && !op->attr.cross_kv &&
           store + 1 < end_of_stack(plan, store) && next->kind == FT_OP_ATTEND_KV &&
           !next->attr.cross_kv && next->in[0] == op->out &&
           next->state[FT_STATE_KEYS] == op->state[FT_STATE_KEYS] &&
           is_read_within(plan, op->out, store + 1, store + 2);
}

/* ---- Weights ------------------------------------------------------------------------------ */

static const int16_t *linear_parameters(const ft_plan *plan, const ft_fusion_group *group,
                                        int linear)
{
    return plan->op[ft_group_first_linear(group) + linear].weight;
}

/* Linear i of one group and linear j of the other have a weight or a bias in common. */
static bool share_parameter(const ft_plan *plan, const ft_fusion_group *a, int i,
                            const ft_fusion_group *b, int j)
{
    const int16_t *w = linear_parameters(plan, a, i), *v = linear_parameters(plan, b, j);
    return w[0] == v[0] || (w[1] >= 0 && w[1] == v[1]);
}

/* Whether both groups have the same parameters in the same order (shared layers). */
static bool have_same_parameters(const ft_plan *plan, const ft_fusion_group *a,
                                 const ft_fusion_group *b)
{
    bool same = ft_group_linears(a) == ft_group_linears(b);
    for (int i = 0; same && i < ft_group_linears(a); i++) {
        const int16_t *w = linear_parameters(plan, a, i), *v = linear_parameters(plan, b, i);
        same = w[0] == v[0] && w[1] == v[1];
    }
    return same;
}

/* Whether no order of the weights makes both groups contiguous; `a` may be `b`. */
static bool have_conflicting_orders(const ft_plan *plan, const ft_fusion_group *a,
                                    const ft_fusion_group *b)
{
    bool same = have_same_parameters(plan, a, b);
    for (int i = 0; i < ft_group_linears(a); i++)
        for (int j = 0; j < ft_group_linears(b); j++)
            if ((!same || i != j) && share_parameter(plan, a, i, b, j))
                return true;
    return false;
}

/*
 * Whether upload can store the weights of `group` contiguously without breaking up an earlier
 * group.  This depends on the linears alone, and not on which values are kept, because all sessions
 * share the weights.
 */
static bool can_be_contiguous(const ft_plan *plan, const ft_fusion_group *group)
{
    bool possible = group->kind == FT_FUSION_LINEAR && ft_group_linears(group) > 1 &&
                    !have_conflicting_orders(plan, group, group);
    for (int i = 0; possible && i < ft_group_linears(group); i++)
        possible = plan->weight[linear_parameters(plan, group, i)[0]].rows >
                   1; /* vectors are stored apart */
    for (int i = 0; possible && i < plan->ngroup; i++)
        possible =
            !plan->group[i].contiguous || !have_conflicting_orders(plan, &plan->group[i], group);
    return possible;
}

/* ------------------------------------------------------------------------------------------- */

bool ft_lower_is_decoder(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (ft_op_info_of(plan->op[i].kind)->work == FT_WORK_CACHE_WRITE)
            return true;
    return false;
}

/* The group that begins at operation `first`; count 1: the operation is in no group. */
static ft_fusion_group group_at(const ft_plan *plan, int first, bool decoder)
{
    ft_fusion_group group = linear_group_at(plan, first, decoder);
    if (group.count == 0 && decoder && is_attention_at(plan, first))
        group = (ft_fusion_group){ .kind = FT_FUSION_ATTENTION, .first = first, .count = 2 };
    if (group.count == 0)
        group.count = 1;
    return group;
}

ft_status ft_lower_groups(ft_plan *plan, ft_error *err)
{
    bool decoder = ft_lower_is_decoder(plan);
    free(plan->group);
    plan->ngroup = 0;
    plan->group = ft_calloc((size_t) plan->nop, sizeof *plan->group);
    if (plan->group == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to group %d operations", plan->nop);
    for (int i = 0; i < plan->nop;) {
        ft_fusion_group group = group_at(plan, i, decoder);
        i += group.count;
        group.contiguous = can_be_contiguous(plan, &group);
        if (group.count > 1)
            plan->group[plan->ngroup++] = group;
    }
    return FT_OK;
}
