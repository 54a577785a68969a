/*
 * plan_cut.c - where a forward pass can stop and a later one resume.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/plan_cut.h"

#include "kernels/fused_ops.h"

#include <string.h>

/* ---- Live values --------------------------------------------------------------------------- */

static void mark_results(const ft_op *op, bool *live, bool is_live)
{
    const int result[] = { op->out, op->quantized, op->second };
    for (int i = 0; i < 3; i++)
        if (result[i] >= 0)
            live[result[i]] = is_live;
}

static void mark_operands(const ft_op *op, bool *live)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] >= 0)
            live[op->in[i]] = true;
}

/* Backwards, as compilers do it: a result is not live before the operation that writes it. */
int ft_plan_find_live(const ft_plan *plan, int op, bool *live)
{
    int count = 0;
    memset(live, 0, (size_t) plan->nvalue * sizeof *live);
    for (int i = plan->nop - 1; i >= op; i--) {
        mark_results(&plan->op[i], live, false);
        mark_operands(&plan->op[i], live);
    }
    for (int i = 0; i < plan->nvalue; i++) {
        const ft_value *value = &plan->value[i];
        live[i] = live[i] && !value->state && value->input == FT_BATCH_NONE;
        count += live[i];
    }
    return count;
}

/* ---- Cuts ---------------------------------------------------------------------------------- */

static bool splits_group(const ft_plan *plan, int op)
{
    for (int i = 0; i < plan->ngroup; i++)
        if (plan->group[i].first < op && op < plan->group[i].first + plan->group[i].count)
            return true;
    return false;
}

static bool uses_cache(const ft_plan *plan, int first, int end, int value)
{
    for (int i = first; i < end; i++)
        for (int k = 0; k < FT_MAX_STATES; k++)
            if (plan->op[i].state[k] == value)
                return true;
    return false;
}

/* Whether a layer's keys and values are stored before `op` and read after it. */
static bool splits_cache(const ft_plan *plan, int op)
{
    for (int i = 0; i < plan->nvalue; i++) {
        ft_rows rows = plan->value[i].rows;
        if ((rows == FT_KV_CACHE || rows == FT_CROSS_KV) && uses_cache(plan, 0, op, i) &&
            uses_cache(plan, op, plan->nop, i))
            return true;
    }
    return false;
}

/*
 * Two values are a residual stream and what a layer adds to it: plans whose norms add have no cut
 * with fewer but at their start.
 */
enum { ENOUGH = 2 };

int ft_plan_cut(const ft_plan *plan, int latest, bool *live)
{
    int best = 0, fewest = plan->nvalue + 1;
    for (int op = latest; op > 0 && fewest > ENOUGH; op--) {
        int count = ft_plan_find_live(plan, op, live);
        if (count >= fewest || splits_group(plan, op) || splits_cache(plan, op))
            continue;
        best = op;
        fewest = count;
    }
    return best;
}
