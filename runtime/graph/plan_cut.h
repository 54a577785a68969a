/*
 * plan_cut.h - where a forward pass can stop and a later one resume: between two operations of a
 * plan, with the values that are live there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_GRAPH_PLAN_CUT_H
#define FT_RUNTIME_GRAPH_PLAN_CUT_H

#include "runtime/graph/plan.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * Set live[i], [nvalue], where an operation before `op`, or the caller, writes value i and an
 * operation from `op` on reads it.  Inputs that come with each batch, and what a session keeps, are
 * never live.  Returns the number of live values.
 */
int ft_plan_find_live(const ft_plan *plan, int op, bool *live);

/*
 * The operation at which to resume: the latest one, up to `latest`, with at most two live values;
 * if there is none, the latest of those with the fewest.  No fusion group and no KV cache extends
 * over it.  0 if there is none but the first.
 * `live` [nvalue] is overwritten.
 */
int ft_plan_cut(const ft_plan *plan, int latest, bool *live);

#pragma GCC visibility pop

#endif
