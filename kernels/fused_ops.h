/*
 * fused_ops.h - fusion groups: consecutive operations of a plan that a device may run as one
 * kernel.
 *
 * Only lowering (runtime/graph/lower_fusion.c) decides the groups and writes them into the plan.
 * ft_plan_layout() gives the values that a group reads and writes distinct memory until the group
 * has ended, because some thread blocks of the kernel still read inputs of the first operation
 * while others write results of the last one.  A GATE whose linear is in the group runs after the
 * linears before it have ended, with the linear.  ft_backend.upload makes the weights of a
 * contiguous group contiguous.  A device launches the fused kernel that supports the group, or runs
 * the operations one by one.  A fused kernel may omit writing values that only the group reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_FUSED_OPS_H
#define FT_KERNELS_FUSED_OPS_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum linears of a group: queries, keys and values. */
enum { FT_GROUP_LINEARS = 3 };

typedef enum ft_fusion {
    FT_FUSION_LINEAR,   /* [NORM, which may add a residual, or QUANTIZE], linears of one input,
                         * [GATE of two, [linear of the quantized GATE]] */
    FT_FUSION_ATTENTION /* STORE_KV with rotary positions, and the ATTEND_KV of its queries */
} ft_fusion;

/* Operations first .. first + count - 1 of a plan; at least two. */
typedef struct ft_fusion_group {
    ft_fusion kind;
    int first, count;

    /*
     * FT_FUSION_LINEAR: the first operation is NORM or QUANTIZE; GATE follows the linears, and a
     * linear follows the GATE.
     */
    bool norm, quantize, gate, down;

    /*
     * FT_FUSION_LINEAR with at least two linears: their weights are contiguous in the order of the
     * linears, and so are their scales, zero points and biases.
     */
    bool contiguous;

    /*
     * FT_FUSION_LINEAR: stride in bytes between the float results of consecutive linears; 0: the
     * strides differ.  Set by ft_plan_layout().
     */
    size_t result_stride;
} ft_fusion_group;

/* The first linear of a group, and the number of linears of one input. */
static inline int ft_group_first_linear(const ft_fusion_group *group)
{
    return group->first + group->norm + group->quantize;
}

static inline int ft_group_linears(const ft_fusion_group *group)
{
    return group->count - group->norm - group->quantize - group->gate - group->down;
}

/* The group that contains operation `op`, or NULL. */
const ft_fusion_group *ft_group_of(const ft_plan *plan, int op);

/*
 * The order of `count` weights in device memory: their own order, but the weights of a contiguous
 * group follow the first of them.  plan NULL: no groups.  The caller frees it; NULL if allocation
 * fails.
 */
int *ft_group_weight_order(const ft_plan *plan, int count);

#ifdef __cplusplus
}
#endif
#endif
