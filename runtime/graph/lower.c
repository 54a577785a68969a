/*
 * lower.c - lowers the graph of a model to the plan for one mode.
 *
 * Lowering is a sequence of optional passes over the list of operations:
 *
 *   fuse           merge linear + activation and add + norm; calibration points are never fused
 *                  away
 *   approx_gelu    replace the GELU that produces a point by its approximation
 *   quantize       insert QUANTIZE after each point; its integer consumers read the result
 *   fold_quantize  merge QUANTIZE into the producer of the float
 *   assign_dtypes  store the float values of tokens as F16 if the fused plan stores them
 *   observe        (instead of the previous four) insert OBSERVE after each point
 *   groups         form groups of neighbouring operations that a device may run as one kernel
 *                  (lower_fusion.c)
 *
 * The quantized value keeps the name of its point, because calibration observed exactly the value
 * that int8 stores.  Its float input is named NAME.float, its dequantized copy NAME.back.
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

/* Whether `value` can be fused away: one operation reads it, and it is no point or output. */
static bool has_single_reader(const ft_plan *plan, int value)
{
    return value >= 0 && !plan->value[value].point && ft_plan_uses(plan, value) == 1 &&
           !is_output(plan, value);
}

/* act(linear(x)): the linear applies the activation in its epilogue. */
static bool fuse_activation(ft_plan *plan, int index)
{
    const ft_op *activate = &plan->op[index];
    ft_op *linear = ft_lower_producer(plan, activate->in[0], FT_OP_LINEAR);
    if (activate->kind != FT_OP_ACTIVATE || linear == NULL ||
        linear->attr.activation != FT_ACT_NONE || !has_single_reader(plan, activate->in[0]))
        return false;
    linear->attr.activation = activate->attr.activation;
    linear->out = activate->out;
    return true;
}

/* Whether an operation between the producer of `value` and operation `end` reads it. */
static bool is_read_before(const ft_plan *plan, int value, int end)
{
    for (int i = ft_plan_producer(plan, value) + 1; i < end; i++)
        if (ft_op_reads(&plan->op[i], value))
            return true;
    return false;
}

/* norm(x + residual): the norm adds its inputs, and writes the sum too if others read it. */
static bool fuse_residual(ft_plan *plan, int index)
{
    ft_op *norm = &plan->op[index];
    int sum = norm->in[0];
    if (norm->kind != FT_OP_NORM || norm->in[1] >= 0 || sum < 0 || plan->value[sum].point)
        return false;
    ft_op *add = ft_lower_producer(plan, sum, FT_OP_ADD);
    bool shared = !has_single_reader(plan, sum);
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
    bool ok = true;
    for (int i = 0; i < plan->nvalue && ok; i++) {
        if (!plan->value[i].point || plan->value[i].inner)
            continue;
        ft_op op = ft_op_init(FT_OP_OBSERVE);
        op.in[0] = (int16_t) i;
        ok = ft_lower_insert(plan, ft_plan_producer(plan, i) + 1, &op);
    }
    return ok;
}

/* ------------------------------------------------------------------------------------------- */

static bool is_quantized_mode(ft_mode mode)
{
    return mode == FT_MODE_FAKE_QUANTIZE || mode == FT_MODE_INT8;
}

static bool run_passes(ft_plan *plan, const ft_lower_options *options)
{
    if (options->fuse)
        fuse(plan);
    if (options->mode == FT_MODE_OBSERVE)
        return observe(plan);
    if (!is_quantized_mode(options->mode))
        return true;
    ft_lower_approx_gelu(plan);
    if (!ft_lower_quantize(plan, options))
        return false;
    if (options->fuse)
        ft_lower_fold_quantize(plan);
    return true;
}

static ft_status lower_quantized(ft_plan *out, const ft_plan *graph,
                                 const ft_lower_options *options, ft_error *err)
{
    FT_TRY(ft_plan_copy(out, graph, err));
    if (run_passes(out, options))
        return FT_OK;
    ft_plan_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory to lower a graph of %d operations", graph->nop);
}

static ft_status assign_dtypes_as_if_fused(ft_plan *plan, const ft_plan *graph,
                                           const ft_lower_options *options, ft_error *err)
{
    ft_plan fused;
    ft_lower_options fused_options = *options;
    fused_options.fuse = true;
    FT_TRY(lower_quantized(&fused, graph, &fused_options, err));
    ft_lower_assign_dtypes(plan, &fused, options->float_dtype);
    ft_plan_fini(&fused);
    return FT_OK;
}

static ft_status lower(ft_plan *out, const ft_plan *graph, const ft_lower_options *options,
                       ft_error *err)
{
    FT_TRY(lower_quantized(out, graph, options, err));
    if (!is_quantized_mode(options->mode)) {
        ft_lower_set_float_dtype(out, options->float_dtype);
        return FT_OK;
    }
    if (options->fuse || options->float_dtype == FT_F32) {
        ft_lower_assign_dtypes(out, out, options->float_dtype);
        return FT_OK;
    }
    return assign_dtypes_as_if_fused(out, graph, options, err);
}

ft_status ft_lower(ft_plan *out, const ft_plan *graph, const ft_lower_options *options,
                   ft_error *err)
{
    assert(options->scale != NULL || !is_quantized_mode(options->mode));
    assert(options->float_dtype == FT_F32 || options->mode == FT_MODE_FLOAT ||
           (options->float_dtype == FT_F16 && is_quantized_mode(options->mode)));
    ft_status status = lower(out, graph, options, err);
    if (status == FT_OK && options->f16_kv_cache)
        ft_lower_f16_kv_cache(out);
    if (status == FT_OK && options->int8_kv_cache && !ft_lower_int8_kv_cache(out))
        status = ft_fail(err, FT_ENOMEM, "no memory for the scales of the KV cache");
    out->batch_invariant = ft_lower_is_decoder(out);
    if (status == FT_OK)
        status = ft_lower_groups(out, err);
    if (status != FT_OK)
        ft_plan_fini(out);
    return status;
}
