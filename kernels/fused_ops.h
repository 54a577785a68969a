/*
 * fused_ops.h - fusion groups: neighbouring operations of a plan that a device may run as one
 * kernel.
 *
 * Lowering decides the groups (runtime/graph/lower_fusion.c) and writes them into the plan; nothing
 * else does.  ft_plan_layout() gives all values that a group reads and writes memory of their own
 * until the group has ended, because the blocks of one kernel still read what the first operation
 * reads while others write what the last one writes.  ft_backend.upload lays the weights of a group
 * one behind the other.  A device launches the kernel that supports the group, or runs the
 * operations one by one; a value that only the group itself reads may then stay unwritten.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_FUSED_OPS_H
#define FT_KERNELS_FUSED_OPS_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Linears of a group at most: queries, keys and values. */
enum { FT_GROUP_LINEARS = 3 };

typedef enum ft_fusion {
    FT_FUSION_LINEAR,   /* [NORM, which may add a residual], linears of one input, [GATE of two] */
    FT_FUSION_ATTENTION /* STORE, which applies rotary positions, and the ATTEND of its queries */
} ft_fusion;

/* Operations first .. first + count - 1 of a plan; at least two. */
typedef struct ft_fusion_group {
    ft_fusion kind;
    int first, count;
    bool norm, gate; /* FT_FUSION_LINEAR: begins with a norm, ends with a gate */

    /*
     * FT_FUSION_LINEAR of at least two: upload lays the weights one behind the other in the order
     * of the linears, and so their scales, their zero points and their biases.
     */
    bool contiguous;

    /*
     * FT_FUSION_LINEAR: bytes from the float result of a linear to that of the next one, the same
     * for all; 0: they differ.  Set by ft_plan_layout().
     */
    size_t result_stride;
} ft_fusion_group;

/* The first linear, and how many there are. */
static inline int ft_group_first_linear(const ft_fusion_group *group)
{
    return group->first + group->norm;
}

static inline int ft_group_linears(const ft_fusion_group *group)
{
    return group->count - group->norm - group->gate;
}

/* The group that has operation `op`, or NULL. */
const ft_fusion_group *ft_group_of(const ft_plan *plan, int op);

/*
 * The order in which upload lays `count` weights of a plan, or of none (NULL): theirs, but those of
 * a contiguous group follow the first of them.  To be freed; NULL without memory.
 */
int *ft_group_weight_order(const ft_plan *plan, int count);

#ifdef __cplusplus
}
#endif
#endif
