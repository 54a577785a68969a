/*
 * lower_edit.c - edits of the list of operations that lowering passes share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/lower_passes.h"

#include "runtime/graph/plan.h"

#include <assert.h>
#include <string.h>

bool ft_op_reads(const ft_op *op, int value)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] == value)
            return true;
    return false;
}

ft_op *ft_lower_producer(ft_plan *plan, int value, ft_op_kind kind)
{
    int index = value < 0 ? -1 : ft_plan_producer(plan, value);
    return index >= 0 && plan->op[index].kind == kind ? &plan->op[index] : NULL;
}

void ft_lower_remove(ft_plan *plan, int index)
{
    plan->encoder_ops -= index < plan->encoder_ops;
    plan->nop--;
    memmove(&plan->op[index], &plan->op[index + 1],
            (size_t) (plan->nop - index) * sizeof plan->op[0]);
}

bool ft_lower_insert(ft_plan *plan, int index, const ft_op *op)
{
    if (ft_plan_add_op(plan, op) < 0)
        return false;
    plan->encoder_ops += plan->encoder_ops > 0 && index <= plan->encoder_ops;
    memmove(&plan->op[index + 1], &plan->op[index],
            (size_t) (plan->nop - 1 - index) * sizeof plan->op[0]);
    plan->op[index] = *op;
    return true;
}

void ft_value_append_suffix(ft_value *value, const char *suffix)
{
    size_t length = strlen(value->name);
    assert(length + strlen(suffix) < sizeof value->name);
    strcpy(value->name + length, suffix);
}

bool ft_value_is_quantized(const ft_value *value)
{
    return value->scale > 0.0f || value->dynamic;
}
