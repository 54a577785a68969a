/*
 * smoothed.c - the smoothing of a plan's values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/smoothed.h"

#include "runtime/graph/plan.h"

const float *ft_value_smoothing(const ft_plan *plan, int value)
{
    int weight = ft_plan_find_smoothing(plan, plan->value[value].name);
    return weight >= 0 ? plan->weight[weight].data : NULL;
}

const float *ft_matrix_smoothing(const ft_plan *plan, int index)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (op->kind == FT_OP_LINEAR && op->weight[0] == index)
            return ft_value_smoothing(plan, op->in[0]);
    }
    return NULL;
}
