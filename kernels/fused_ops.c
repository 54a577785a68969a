/*
 * fused_ops.c - lookup of fusion groups, and the order of their weights in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/fused_ops.h"

#include "runtime/mem.h"

#include <stdlib.h>

const ft_fusion_group *ft_group_of(const ft_plan *plan, int op)
{
    for (int i = 0; i < plan->ngroup; i++) {
        const ft_fusion_group *group = &plan->group[i];
        if (group->first <= op && op < group->first + group->count)
            return group;
    }
    return NULL;
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* The weight (slot 0) or bias (slot 1) of linear `i` of a group, or -1. */
static int parameter_of(const ft_plan *plan, const ft_fusion_group *group, int i, int slot)
{
    return plan->op[ft_group_first_linear(group) + i].weight[slot];
}

/* The contiguous group that reads weight `index` in this slot, or NULL. */
static const ft_fusion_group *group_reading(const ft_plan *plan, int index, int slot)
{
    for (int g = 0; g < plan->ngroup; g++) {
        const ft_fusion_group *group = &plan->group[g];
        for (int i = 0; group->contiguous && i < ft_group_linears(group); i++)
            if (parameter_of(plan, group, i, slot) == index)
                return group;
    }
    return NULL;
}

/* Append a weight that is not in the order yet, together with the others of its contiguous group.
 */
static int append_weight(int *order, int at, const ft_plan *plan, int index, bool *placed)
{
    for (int slot = 0; plan != NULL && !placed[index] && slot < 2; slot++) {
        const ft_fusion_group *group = group_reading(plan, index, slot);
        for (int i = 0; group != NULL && i < ft_group_linears(group); i++) {
            int member = parameter_of(plan, group, i, slot);
            if (!placed[member])
                order[at++] = member;
            placed[member] = true;
        }
    }
    if (!placed[index])
        order[at++] = index;
    placed[index] = true;
    return at;
}

int *ft_group_weight_order(const ft_plan *plan, int count)
{
    bool *placed = ft_calloc((size_t) count, sizeof *placed);
    int *order = ft_calloc((size_t) count, sizeof *order);
    for (int i = 0, at = 0; placed != NULL && order != NULL && i < count; i++)
        at = append_weight(order, at, plan, i, placed);
    if (placed == NULL) {
        free(order);
        order = NULL;
    }
    free(placed);
    return order;
}
