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

#include "runtime/lower.h"

#include "runtime/error.h"
#include "runtime/plan.h"

#include <assert.h>
#include <string.h>

/* ---- Helpers ------------------------------------------------------------------------------ */

static bool is_output(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            return true;
    return false;
}

/* Keys or values of the cache or of the memory. */
static bool is_store(const ft_value *value)
{
    return value->state && (value->rows == FT_CACHE || value->rows == FT_MEMORY);
}

/* The result of an operation that only the next one sees may be fused away. */
static bool is_private(const ft_plan *plan, int value)
{
    return value >= 0 && !plan->value[value].point && ft_plan_uses(plan, value) == 1 &&
           !is_output(plan, value);
}

static bool reads(const ft_op *op, int value)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] == value)
            return true;
    return false;
}

/* The operation that makes `value`, if it is of this kind; else NULL. */
static ft_op *producer_of_kind(ft_plan *plan, int value, ft_op_kind kind)
{
    int index = value < 0 ? -1 : ft_plan_producer(plan, value);
    return index >= 0 && plan->op[index].kind == kind ? &plan->op[index] : NULL;
}

static void remove_op(ft_plan *plan, int index)
{
    plan->source_ops -= index < plan->source_ops;
    plan->nop--;
    memmove(&plan->op[index], &plan->op[index + 1],
            (size_t) (plan->nop - index) * sizeof plan->op[0]);
}

/* What is inserted follows the operation whose result it reads, and belongs to the same run. */
static bool insert_op(ft_plan *plan, int index, const ft_op *op)
{
    if (ft_plan_add_op(plan, op) < 0)
        return false;
    plan->source_ops += plan->source_ops > 0 && index <= plan->source_ops;
    memmove(&plan->op[index + 1], &plan->op[index],
            (size_t) (plan->nop - 1 - index) * sizeof plan->op[0]);
    plan->op[index] = *op;
    return true;
}

/* "NAME.float" from "NAME"; graphs leave room for it. */
static void append_suffix(ft_value *value, const char *suffix)
{
    size_t length = strlen(value->name);
    assert(length + strlen(suffix) < sizeof value->name);
    strcpy(value->name + length, suffix);
}

/* ---- Fuse --------------------------------------------------------------------------------- */

/* act(linear(x)): the linear applies the activation where it makes the value. */
static bool fuse_activation(ft_plan *plan, int index)
{
    const ft_op *activate = &plan->op[index];
    ft_op *linear = producer_of_kind(plan, activate->in[0], FT_OP_LINEAR);
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
        if (reads(&plan->op[i], value))
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
    ft_op *add = producer_of_kind(plan, sum, FT_OP_ADD);
    bool shared = !is_private(plan, sum);
    if (add == NULL || is_read_before(plan, sum, index))
        return false;
    norm->in[0] = add->in[0];
    norm->in[1] = add->in[1];
    norm->second = shared ? (int16_t) sum : -1;
    remove_op(plan, (int) (add - plan->op));
    return true;
}

static void fuse(ft_plan *plan)
{
    for (int i = plan->nop - 1; i >= 0; i--)
        if (fuse_activation(plan, i))
            remove_op(plan, i);
    for (int i = plan->nop - 1; i >= 0; i--)
        fuse_residual(plan, i);
}

/* ---- Coarsen ------------------------------------------------------------------------------ */

/* Where gelu makes a point, its short form is exact enough: the point becomes codes. */
static void coarsen(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        ft_op *op = &plan->op[i];
        if (op->attr.activation == FT_ACT_GELU && plan->value[op->out].point)
            op->attr.activation = FT_ACT_GELU_CODES;
    }
}

/* ---- Quantize ----------------------------------------------------------------------------- */

/* Whether operand `slot` of `op` is read as codes once its value has them. */
static bool reads_codes(const ft_plan *plan, const ft_op *op, int slot, const ft_lowering *how)
{
    switch (op->kind) {
    case FT_OP_LINEAR:
        return plan->weight[op->weight[0]].scale != NULL;
    case FT_OP_ATTENTION:
        return !how->dynamic; /* its sums run over rows, whose scales would differ */
    case FT_OP_ADD:
    case FT_OP_NORM:
        return slot == 1 && how->int8_residual;
    default:
        return false;
    }
}

static bool has_code_readers(const ft_plan *plan, int value, const ft_lowering *how)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value && reads_codes(plan, &plan->op[i], j, how))
                return true;
    return false;
}

/* Let every consumer that can read `codes` do so. */
static void redirect_code_readers(ft_plan *plan, int value, int codes, const ft_lowering *how)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value && reads_codes(plan, &plan->op[i], j, how))
                plan->op[i].in[j] = (int16_t) codes;
}

static void redirect_all_readers(ft_plan *plan, int value, int other)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value)
                plan->op[i].in[j] = (int16_t) other;
    for (int i = 0; i < plan->noutput; i++)
        if (plan->output[i].value == value)
            plan->output[i].value = other;
}

static bool is_of_codes(const ft_value *value)
{
    return value->scale > 0.0f || value->dynamic;
}

/* Split a point into its float and its codes; the codes take the name. */
static int split_point(ft_plan *plan, int value, const ft_lowering *how)
{
    ft_value codes = plan->value[value];
    codes.dtype = how->mode == FT_MODE_INT8 ? FT_I8 : FT_F32;
    codes.dynamic = how->dynamic;
    codes.scale = how->dynamic ? 0.0f : how->scale[value];
    append_suffix(&plan->value[value], ".float");
    plan->value[value].point = false;
    return ft_plan_add_value(plan, &codes);
}

/* In an int8 residual stream whoever needs floats gets them back from the codes. */
static bool dequantize_for_the_rest(ft_plan *plan, int value, int codes, int quantize)
{
    if (ft_plan_uses(plan, value) == 1)
        return true;
    ft_value real = plan->value[value];
    memcpy(real.name, plan->value[codes].name, sizeof real.name);
    append_suffix(&real, ".back");
    int back = ft_plan_add_value(plan, &real);
    if (back < 0)
        return false;
    redirect_all_readers(plan, value, back);
    plan->op[quantize].in[0] = (int16_t) value;
    ft_op op = ft_op_make(FT_OP_DEQUANTIZE);
    op.in[0] = (int16_t) codes;
    op.out = (int16_t) back;
    return insert_op(plan, quantize + 1, &op);
}

static bool quantize_point(ft_plan *plan, int value, const ft_lowering *how)
{
    if (!how->int8_residual && !has_code_readers(plan, value, how))
        return true;
    int codes = split_point(plan, value, how);
    if (codes < 0)
        return false;
    redirect_code_readers(plan, value, codes, how);
    int at = ft_plan_producer(plan, value) + 1;
    ft_op op = ft_op_make(FT_OP_QUANTIZE);
    op.in[0] = (int16_t) value;
    op.codes = (int16_t) codes;
    return insert_op(plan, at, &op) &&
           (!how->int8_residual || dequantize_for_the_rest(plan, value, codes, at));
}

/* Inner points make their own scale, row by row. */
static bool quantize(ft_plan *plan, const ft_lowering *how)
{
    bool fine = true;
    for (int i = plan->nvalue - 1; i >= 0 && fine; i--) {
        if (plan->value[i].point && !plan->value[i].inner)
            fine = quantize_point(plan, i, how);
    }
    return fine;
}

/* ---- Fold --------------------------------------------------------------------------------- */

/*
 * Whether an operation that makes floats can make codes instead, or floats and codes at once. Codes
 * that are scaled by row can only come from one that sees whole rows.
 */
static bool writes_codes(const ft_plan *plan, const ft_op *op, bool at_once, bool dynamic)
{
    if (op->kind == FT_OP_LINEAR || op->kind == FT_OP_ATTENTION)
        return !at_once && !dynamic && is_of_codes(&plan->value[op->in[0]]);
    if (op->kind == FT_OP_PATCHES)
        return !at_once && !dynamic;
    return op->kind == FT_OP_NORM || (op->kind == FT_OP_GATE && !at_once);
}

/* The producer of a float writes its codes. */
static bool fold_quantize(ft_plan *plan, int index)
{
    const ft_op *quantize_op = &plan->op[index];
    if (quantize_op->kind != FT_OP_QUANTIZE)
        return false;
    int maker = ft_plan_producer(plan, quantize_op->in[0]);
    bool only_reader = ft_plan_uses(plan, quantize_op->in[0]) == 1;
    bool dynamic = plan->value[quantize_op->codes].dynamic;
    if (maker < 0 || plan->op[maker].out != quantize_op->in[0] ||
        !writes_codes(plan, &plan->op[maker], !only_reader, dynamic))
        return false;
    ft_op *producer = &plan->op[maker];
    producer->codes = quantize_op->codes;
    if (only_reader)
        producer->out = -1;
    return true;
}

static void fold(ft_plan *plan)
{
    for (int i = plan->nop - 1; i >= 0; i--)
        if (fold_quantize(plan, i))
            remove_op(plan, i);
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
        fine = insert_op(plan, ft_plan_producer(plan, i) + 1, &op);
    }
    return fine;
}

/* ---- Narrow ------------------------------------------------------------------------------- */

static bool touches(const ft_op *op, int value)
{
    return op->out == value || reads(op, value);
}

/* Whether an operation that computes in one precision reads or writes the value. */
static bool must_be_float(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        bool multiplies_floats =
            op->kind == FT_OP_LINEAR && plan->weight[op->weight[0]].scale == NULL;
        if ((multiplies_floats || op->kind == FT_OP_ATTENTION) && touches(op, value))
            return true;
    }
    return false;
}

/* What attention over a cache and gates read and write. */
static bool is_bounded(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        bool bounded =
            op->kind == FT_OP_STORE || op->kind == FT_OP_ATTEND || op->kind == FT_OP_GATE;
        if (bounded && touches(op, value))
            return true;
    }
    return false;
}

static bool has_cache(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++)
        if (plan->op[i].kind == FT_OP_STORE)
            return true;
    return false;
}

/* A head in halves multiplies halves: what it reads is stored as such. */
static void narrow_head(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        const ft_op *select = producer_of_kind(plan, op->in[0], FT_OP_SELECT);
        if (op->kind != FT_OP_LINEAR || select == NULL || is_of_codes(&plan->value[op->in[0]]))
            continue;
        ft_dtype dtype = plan->weight[op->weight[0]].dtype;
        if (ft_blocks_bits(dtype) != 0) /* codes multiply floats of any precision */
            continue;
        plan->value[op->in[0]].dtype = plan->value[select->in[0]].dtype = dtype;
    }
}

/* A decoder's values beside its codes. */
static void narrow_decoder(ft_plan *plan, const ft_plan *fused, ft_dtype real)
{
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        bool cache = is_store(value);
        if (value->dtype == FT_F32 && !is_of_codes(value) &&
            (cache || (is_bounded(fused, i) && ft_plan_stores(fused, i))))
            value->dtype = real;
    }
    narrow_head(plan);
}

/* `fused` is the plan itself, or the fused one of the same graph: their values correspond. */
static void narrow(ft_plan *plan, const ft_plan *fused, ft_dtype real)
{
    assert(plan->nvalue == fused->nvalue);
    if (has_cache(plan)) {
        narrow_decoder(plan, fused, real);
        return;
    }
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        if (value->dtype == FT_F32 && value->scale <= 0.0f && value->rows == FT_TOKENS &&
            ft_plan_stores(fused, i) && !must_be_float(fused, i))
            value->dtype = real;
    }
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
    coarsen(plan);
    if (!quantize(plan, how))
        return false;
    if (how->fuse)
        fold(plan);
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
    narrow(plan, &fused, how->real);
    ft_plan_fini(&fused);
    return FT_OK;
}

/* Logits and log-probabilities keep the precision that products add in. */
static bool is_logits(const ft_plan *plan, int value)
{
    int maker = ft_plan_producer(plan, value);
    return plan->value[value].rows == FT_SELECTED && maker >= 0 &&
           plan->op[maker].kind != FT_OP_SELECT;
}

/* Images are read as callers give them. */
static bool is_image(const ft_plan *plan, int value)
{
    return plan->value[value].rows == FT_SEQUENCES && !plan->value[value].state &&
           ft_plan_producer(plan, value) < 0;
}

static void set_real(ft_plan *plan, ft_dtype real)
{
    for (int i = 0; i < plan->nvalue; i++)
        if (plan->value[i].dtype == FT_F32 && !is_logits(plan, i) && !is_image(plan, i))
            plan->value[i].dtype = real;
}

/* Give keys or values a state of their own for scales; -1 without memory. */
static int add_scales(ft_plan *plan, int cache, int32_t heads)
{
    ft_value scales = plan->value[cache];
    scales.cols = heads;
    scales.dtype = FT_F32;
    append_suffix(&scales, ".scale");
    int index = ft_plan_find(plan, scales.name);
    return index >= 0 ? index : ft_plan_add_value(plan, &scales);
}

/* Keys and values become codes in the cache. */
static bool narrow_cache(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        if (plan->op[i].kind != FT_OP_STORE && plan->op[i].kind != FT_OP_ATTEND)
            continue;
        int32_t heads = plan->op[i].attr.kv_heads;
        int keys = plan->op[i].state[FT_STATE_KEYS], values = plan->op[i].state[FT_STATE_VALUES];
        int key_scales = add_scales(plan, keys, heads);
        int value_scales = add_scales(plan, values, heads);
        if (key_scales < 0 || value_scales < 0)
            return false;
        plan->op[i].state[FT_STATE_KEY_SCALES] = (int16_t) key_scales;
        plan->op[i].state[FT_STATE_VALUE_SCALES] = (int16_t) value_scales;
        plan->value[keys].dtype = plan->value[values].dtype = FT_I8;
    }
    return true;
}

static void halve_cache(ft_plan *plan)
{
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        if (is_store(value) && value->dtype == FT_F32)
            value->dtype = FT_F16;
    }
}

static ft_status lower(ft_plan *out, const ft_plan *graph, const ft_lowering *how, ft_error *err)
{
    FT_TRY(lower_to_floats(out, graph, how, err));
    if (!makes_codes(how->mode)) {
        set_real(out, how->real);
        return FT_OK;
    }
    if (how->fuse || how->real == FT_F32) {
        narrow(out, out, how->real);
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
        halve_cache(out);
    if (status == FT_OK && how->int8_cache && !narrow_cache(out))
        status = ft_fail(err, FT_ENOMEM, "no memory for the scales of a cache");
    if (status != FT_OK)
        ft_plan_fini(out);
    return status;
}
