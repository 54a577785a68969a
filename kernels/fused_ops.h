/*
 * fused_ops.h - neighbouring operations of a plan that a device may perform as one.
 *
 * A kernel that performs several operations reads what the first one reads while other blocks of
 * it write what the last one writes.  So ft_plan_layout() keeps all that a chain reads and writes
 * apart until it has ended, and what it makes only for itself need not be written at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_FUSED_OPS_H
#define FT_KERNELS_FUSED_OPS_H

#include "kernels/op.h"

enum { FT_FUSION_MAX_LINEARS = 3 };

typedef enum ft_fusion_kind {
    FT_FUSION_NONE,     /* one operation */
    FT_FUSION_LINEARS,  /* [NORM], linears of one input and one shape, [GATE of the two] */
    FT_FUSION_ATTENTION /* STORE, and the ATTEND that reads its queries */
} ft_fusion_kind;

/* Operations first .. first + count - 1 of a plan. */
typedef struct ft_fusion {
    ft_fusion_kind kind;
    int first, count;
    bool norm, gate; /* of a product: begins with a norm, ends with a gate */
} ft_fusion;

/*
 * The chain that begins with operation `first`.  Norms and gates, stores and attentions are joined
 * in plans for decoders only, whose steps have few rows: elsewhere memory matters more.
 */
ft_fusion ft_fusion_at(const ft_plan *plan, int first);

#endif
