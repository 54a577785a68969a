/*
 * assign_dtypes.c - the storage types of values that are not quantized, and of KV caches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/lower_passes.h"

#include "runtime/graph/plan.h"

#include <assert.h>

/* Keys or values of the KV cache or of the cross-attention KV. */
static bool is_kv_cache(const ft_value *value)
{
    return value->state && (value->rows == FT_KV_CACHE || value->rows == FT_CROSS_KV);
}

/* ---- Quantized plans ---------------------------------------------------------------------- */

static bool reads_or_writes(const ft_op *op, int value)
{
    return op->out == value || ft_op_reads(op, value);
}

/* Whether an operation that requires one dtype for all float operands reads or writes the value. */
static bool must_stay_f32(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        bool scaled = op->weight[0] >= 0 && plan->weight[op->weight[0]].scale != NULL;
        if (ft_op_info_of(op->kind)->storage == FT_STORAGE_ONE && !scaled &&
            reads_or_writes(op, value))
            return true;
    }
    return false;
}

/* Whether a gate or attention with a KV cache reads or writes the value. */
static bool is_bounded(const ft_plan *plan, int value)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (ft_op_info_of(op->kind)->storage == FT_STORAGE_BOUNDED && reads_or_writes(op, value))
            return true;
    }
    return false;
}

/* An LM head with F16 or BF16 weights is a GEMM of that dtype, so its input is stored in it too. */
static void assign_head_dtype(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        const ft_op *select = ft_lower_producer(plan, op->in[0], FT_OP_GATHER_ROWS);
        if (op->kind != FT_OP_LINEAR || select == NULL ||
            ft_value_is_quantized(&plan->value[op->in[0]]))
            continue;
        ft_dtype dtype = plan->weight[op->weight[0]].dtype;
        if (ft_groupwise_bits(dtype) != 0) /* kernels support any float input */
            continue;
        plan->value[op->in[0]].dtype = plan->value[select->in[0]].dtype = dtype;
    }
}

/* Assign dtypes to the values of a decoder that are not quantized. */
static void assign_decoder_dtypes(ft_plan *plan, const ft_plan *fused, ft_dtype float_dtype)
{
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        bool is_cache = is_kv_cache(value);
        if (value->dtype == FT_F32 && !ft_value_is_quantized(value) &&
            (is_cache || (is_bounded(fused, i) && ft_plan_stores(fused, i))))
            value->dtype = float_dtype;
    }
    assign_head_dtype(plan);
}

void ft_lower_assign_dtypes(ft_plan *plan, const ft_plan *fused, ft_dtype float_dtype)
{
    assert(plan->nvalue == fused->nvalue);
    if (ft_lower_is_decoder(plan)) {
        assign_decoder_dtypes(plan, fused, float_dtype);
        return;
    }
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        if (value->dtype == FT_F32 && !ft_value_is_quantized(value) && value->rows == FT_TOKENS &&
            ft_plan_stores(fused, i) && !must_stay_f32(fused, i))
            value->dtype = float_dtype;
    }
}

/* ---- Float plans ---------------------------------------------------------------------------- */

/* Logits and log-probabilities stay F32, the type of the GEMM accumulators. */
static bool is_logits(const ft_plan *plan, int value)
{
    int producer_index = ft_plan_producer(plan, value);
    return plan->value[value].rows == FT_SELECTED && producer_index >= 0 &&
           plan->op[producer_index].kind != FT_OP_GATHER_ROWS;
}

/* Images stay in the format that the caller passes. */
static bool is_image(const ft_plan *plan, int value)
{
    return plan->value[value].rows == FT_SEQUENCES && !plan->value[value].state &&
           ft_plan_producer(plan, value) < 0;
}

void ft_lower_set_float_dtype(ft_plan *plan, ft_dtype float_dtype)
{
    for (int i = 0; i < plan->nvalue; i++)
        if (plan->value[i].dtype == FT_F32 && !is_logits(plan, i) && !is_image(plan, i))
            plan->value[i].dtype = float_dtype;
}

/* ---- KV caches ------------------------------------------------------------------------------ */

/* The state that holds the scales of `cache`, one per token and head; -1: out of memory. */
static int add_scale_state(ft_plan *plan, int cache, int32_t heads)
{
    ft_value scales = plan->value[cache];
    scales.cols = heads;
    scales.dtype = FT_F32;
    ft_value_append_suffix(&scales, ".scale");
    int index = ft_plan_find(plan, scales.name);
    return index >= 0 ? index : ft_plan_add_value(plan, &scales);
}

bool ft_lower_int8_kv_cache(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        if (!ft_op_uses_cache(plan->op[i].kind))
            continue;
        int32_t heads = plan->op[i].attr.kv_heads;
        int keys = plan->op[i].state[FT_STATE_KEYS], values = plan->op[i].state[FT_STATE_VALUES];
        int key_scales = add_scale_state(plan, keys, heads);
        int value_scales = add_scale_state(plan, values, heads);
        if (key_scales < 0 || value_scales < 0)
            return false;
        plan->op[i].state[FT_STATE_KEY_SCALES] = (int16_t) key_scales;
        plan->op[i].state[FT_STATE_VALUE_SCALES] = (int16_t) value_scales;
        plan->value[keys].dtype = plan->value[values].dtype = FT_I8;
    }
    return true;
}

void ft_lower_f16_kv_cache(ft_plan *plan)
{
    for (int i = 0; i < plan->nvalue; i++) {
        ft_value *value = &plan->value[i];
        if (is_kv_cache(value) && value->dtype == FT_F32)
            value->dtype = FT_F16;
    }
}
