/*
 * plan.h - plans as data: make, search, lay out in memory, print.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_PLAN_H
#define FT_RUNTIME_GRAPH_PLAN_H

#include "kernels/backend.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* An operation that reads and writes nothing yet: all indices -1. */
ft_op ft_op_init(ft_op_kind kind);

/* Append; the index of the new element, or -1 without memory.  Arrays grow by doubling. */
int ft_plan_add_value(ft_plan *plan, const ft_value *value);
int ft_plan_add_op(ft_plan *plan, const ft_op *op);

/* A deep copy of values, operations and groups; weights stay borrowed.  Free with ft_plan_fini().
 */
FT_MUST_USE ft_status ft_plan_copy(ft_plan *out, const ft_plan *plan, ft_error *err);
void ft_plan_fini(ft_plan *plan);

/* Index of the value or weight of that name, or -1. */
int ft_plan_find(const ft_plan *plan, const char *name);
int ft_plan_find_weight(const ft_plan *plan, const char *name);

/* Index of the operation that writes `value` (its float or its codes), or -1 for an input. */
int ft_plan_producer(const ft_plan *plan, int value);

/* How many operations and outputs read `value`. */
int ft_plan_uses(const ft_plan *plan, int value);

/* Whether a run leaves `value` in memory: what a fusion swallowed nobody reads or writes. */
bool ft_plan_stores(const ft_plan *plan, int value);

/* The lowest and the highest operation for which a value must keep its memory. */
typedef struct ft_lifetime {
    int first, last;
} ft_lifetime;

/*
 * Give every value its offset, so that values alive at the same time do not overlap, and set
 * plan->arena.  Inputs live from the start, outputs and kept values to the end, and what a fusion
 * group (kernels/fused_ops.h) touches from its begin to its end.  States live always.  FT_ELIMIT
 * when the rows of a value are more than memory can address.
 */
FT_MUST_USE ft_status ft_plan_layout(ft_plan *plan, const ft_limits *limits, ft_error *err);

/*
 * One operation a line: result, shape, dtype <- operands, and what is fused; then the fusion groups
 * and the outputs.
 */
FT_MUST_USE ft_status ft_plan_write(const ft_plan *plan, FILE *file, ft_error *err);

#pragma GCC visibility pop

#endif
