/*
 * lower.c - from a family's graph to the plan for one purpose.
 *
 * Passes over a list of operations, each simple, each optional:
 *
 *   fuse      linear + activation, add + norm.  A fusion never swallows a point.
 *   coarsen   gelu of a point to its short form.
 *   quantize  after each point an operation that makes codes; integer consumers read those.
 *   fold      quantize moves into the operation that produced the float.
 *   narrow    real values of tokens become halves where the fused plan stores them.
 *   observe   (instead of the last four) after each point an operation that counts it.
 *
 * A point keeps its name on the codes: calibration observed exactly what int8 stores.  The float
 * that they were made of is called NAME.float, the float made of them NAME.back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/lower_passes.h"

#include "runtime/error.h"
#include "runtime/graph/plan.h"

#include <assert.h>

/* ---- Fuse --------------------------------------------------------------------------------- */

static bool is_output(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return true;
    return false;
}

/* The result of an operation that only the next one sees may be fused away. */
static bool is_private(const ft_plan *plan, int value)
{
    return value >= 0 && !plan->value[value].point && ft_plan_uses(plan, value) == 1 &&
           !is_output(plan, value);
}

/* act(linear(x)): the linear applies the activation where it makes the value. */
static bool fuse_activation(ft_plan *plan, int index)
{
    const ft_op *activate = &plan->op[index];
    ft_op *linear = ft_lower_producer(plan, activate->in[0], FT_OP_LINEAR);
    if (activate->kind != FT_OP_ACTIVATE || linear == NULL ||
        linear->attr.activation != FT_ACT_NONE || !is_private(plan, activate->in[0]))
        return false;
    linear->attr.activation = activate->attr.activation;
    linear->out = activate->out;
    return true;
}

/* Whether an operation between the one that makes `value` and number `end` reads it. */
static bool is_read_before(const ft_plan *plan, int value, int end)
{
    for (int i = ft_plan_producer(plan, value) + 1; i < end; i++)
        if (ft_op_reads(&plan->op[i], value))
            return true;
    return false;
}

/* norm(x + residual): the norm adds while it reads; where others read the sum, it writes that too.
 */
static bool fuse_residual(ft_plan *plan, int index)
{
    ft_op *norm = &plan->op[index];
    int sum = norm->in[0];
    if (norm->kind != FT_OP_NORM || norm->in[1] >= 0 || sum < 0 || plan->value[sum].point)
        return false;
    ft_op *add = ft_lower_producer(plan, sum, FT_OP_ADD);
    bool shared = !is_private(plan, sum);
    if (add == NULL || is_read_before(plan, sum, index))
        return false;
    norm->in[0] = add->in[0];
    norm->in[1] = add->in[1];
    norm->second = shared ? (int16_t) sum : -1;
    ft_lower_remove(plan, (int) (add - plan->op));
    return true;
}

static void fuse(ft_plan *plan)
{
    for (int i = plan->nop - 1; i >= 0; i--)
        if (fuse_activation(plan, i))
            ft_lower_remove(plan, i);
    for (int i = plan->nop - 1; i >= 0; i--)
        fuse_residual(plan, i);
}

/* ---- Observe ------------------------------------------------------------------------------ */

static bool observe(ft_plan *plan)
{
    bool fine = true;
    for (int i = 0; i < plan->nvalue && fine; i++) {
        if (!plan->value[i].point || plan->value[i].inner)
            continue;
        ft_op op = ft_op_make(FT_OP_OBSERVE);
        op.in[0] = (int16_t) i;
        fine = ft_lower_insert(plan, ft_plan_producer(plan, i) + 1, &op);
    }
    return fine;
}

/* ------------------------------------------------------------------------------------------- */

static bool makes_codes(ft_mode mode)
{
    return mode == FT_MODE_FAKE || mode == FT_MODE_INT8;
}

static bool run_passes(ft_plan *plan, const ft_lowering *how)
{
    if (how->fuse)
        fuse(plan);
    if (how->mode == FT_MODE_OBSERVE)
        return observe(plan);
    if (!makes_codes(how->mode))
        return true;
    ft_lower_coarsen(plan);
    if (!ft_lower_quantize(plan, how))
        return false;
    if (how->fuse)
        ft_lower_fold(plan);
    return true;
}

static ft_status lower_to_floats(ft_plan *out, const ft_plan *graph, const ft_lowering *how,
                                 ft_error *err)
{
    FT_TRY(ft_plan_copy(out, graph, err));
    if (run_passes(out, how))
        return FT_OK;
    ft_plan_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory to lower a graph of %d operations", graph->nop);
}

static ft_status narrow_as_if_fused(ft_plan *plan, const ft_plan *graph, const ft_lowering *how,
                                    ft_error *err)
{
    ft_plan fused;
    ft_lowering like = *how;
    like.fuse = true;
    FT_TRY(lower_to_floats(&fused, graph, &like, err));
    ft_lower_narrow(plan, &fused, how->real);
    ft_plan_fini(&fused);
    return FT_OK;
}

static ft_status lower(ft_plan *out, const ft_plan *graph, const ft_lowering *how, ft_error *err)
{
    FT_TRY(lower_to_floats(out, graph, how, err));
    if (!makes_codes(how->mode)) {
        ft_lower_set_real(out, how->real);
        return FT_OK;
    }
    if (how->fuse || how->real == FT_F32) {
        ft_lower_narrow(out, out, how->real);
        return FT_OK;
    }
    return narrow_as_if_fused(out, graph, how, err);
}

ft_status ft_lower(ft_plan *out, const ft_plan *graph, const ft_lowering *how, ft_error *err)
{
    assert(how->scale != NULL || how->dynamic || !makes_codes(how->mode));
    assert(how->real == FT_F32 || how->mode == FT_MODE_FLOAT ||
           (how->real == FT_F16 && makes_codes(how->mode)));
    ft_status status = lower(out, graph, how, err);
    if (status == FT_OK && how->half_cache)
        ft_lower_cache_halves(out);
    if (status == FT_OK && how->int8_cache && !ft_lower_cache_codes(out))
        status = ft_fail(err, FT_ENOMEM, "no memory for the scales of a cache");
    if (status != FT_OK)
        ft_plan_fini(out);
    return status;
}
