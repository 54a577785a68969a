/*
 * plan.h - plans as data structures: build, search, lay out in memory, print.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_PLAN_H
#define FT_RUNTIME_GRAPH_PLAN_H

#include "kernels/backend.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* An operation without operands and results: all indices are -1. */
ft_op ft_op_init(ft_op_kind kind);

/* Append a copy; returns its index, or -1 when out of memory or indices.  Arrays grow by
 * doubling. */
int ft_plan_add_value(ft_plan *plan, const ft_value *value);
int ft_plan_add_op(ft_plan *plan, const ft_op *op);

/* Copy a plan with its values, operations and groups; weights stay borrowed.  Free *out with
 * ft_plan_fini().  FT_ENOMEM: *out is empty. */
FT_MUST_USE ft_status ft_plan_copy(ft_plan *out, const ft_plan *plan, ft_error *err);
void ft_plan_fini(ft_plan *plan);

/* Index of the value or weight with that name, or -1. */
int ft_plan_find(const ft_plan *plan, const char *name);
int ft_plan_find_weight(const ft_plan *plan, const char *name);

/* The weight POINT.smooth that smooths a calibration point (FT_WEIGHT_SMOOTHING), or -1. */
#define FT_SMOOTHING_SUFFIX ".smooth"
int ft_plan_find_smoothing(const ft_plan *plan, const char *point);

/* Index of the operation that writes `value` (as float or quantized), or -1 for an input. */
int ft_plan_producer(const ft_plan *plan, int value);

/* Number of operands and outputs that read `value`. */
int ft_plan_uses(const ft_plan *plan, int value);

/* Whether a forward pass stores `value`, that is, whether it was not fused away. */
bool ft_plan_stores(const ft_plan *plan, int value);

/* The first and the last operation during which a value occupies its memory. */
typedef struct ft_lifetime {
    int first, last;
} ft_lifetime;

/*
 * Set the offset of every value in bytes, so that values that are live at the same time do not
 * overlap, and plan->arena, the total size in bytes.  Inputs are live from the start, outputs and
 * kept values to the end, states always, and the values of a fusion group (kernels/fused_ops.h)
 * from its first to its last operation.  FT_ELIMIT: a value exceeds the address space; FT_ENOMEM:
 * out of memory.
 */
FT_MUST_USE ft_status ft_plan_layout(ft_plan *plan, const ft_limits *limits, ft_error *err);

/*
 * Print one operation per line (result, shape, dtype <- operands, fused operations), then the
 * fusion groups and the outputs.  Fails with the error of the file if it cannot be written.
 */
FT_MUST_USE ft_status ft_plan_write(const ft_plan *plan, FILE *file, ft_error *err);

#pragma GCC visibility pop

#endif
