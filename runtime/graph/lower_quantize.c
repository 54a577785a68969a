/*
 * lower_quantize.c - quantizes calibration points: approx_gelu, quantize, fold_quantize.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/graph/lower_passes.h"

#include "runtime/graph/plan.h"

#include <string.h>

/* ---- Approximate GELU --------------------------------------------------------------------- */

/* The approximation suffices for a GELU that produces a point, since int8 rounds its result. */
void ft_lower_approx_gelu(ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        ft_op *op = &plan->op[i];
        if (op->attr.activation == FT_ACT_GELU && plan->value[op->out].point)
            op->attr.activation = FT_ACT_GELU_APPROX;
    }
}

/* ---- Quantize ----------------------------------------------------------------------------- */

/* The static scale of a value of the graph, or of the quantized value split from it; 0: none. */
static float static_scale(const ft_plan *plan, int value, const ft_lower_options *options)
{
    const ft_value *v = &plan->value[value];
    return ft_value_is_quantized(v) ? v->scale : options->scale[value];
}

/*
 * Attention sums over rows, so its quantized operands must not have a scale per row. An int8
 * residual stream has static scales only.
 */
static bool has_static_operands(const ft_plan *plan, const ft_op *op,
                                const ft_lower_options *options)
{
    if (options->int8_residual)
        return true;
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] >= 0 && static_scale(plan, op->in[i], options) <= 0.0f)
            return false;
    return true;
}

/* Whether `op` reads its operand `slot` as quantized values if they exist. */
static bool reads_quantized(const ft_plan *plan, const ft_op *op, int slot,
                            const ft_lower_options *options)
{
    switch (ft_op_info_of(op->kind)->reads) {
    case FT_READS_AS_WEIGHT:
        return slot == 0 && plan->weight[op->weight[0]].scale != NULL;
    case FT_READS_STATIC:
        return has_static_operands(plan, op, options);
    case FT_READS_RESIDUAL:
        return slot == 1 && options->int8_residual;
    case FT_READS_QUANTIZED:
    case FT_READS_FLOATS:
        break;
    }
    return false;
}

static bool has_quantized_readers(const ft_plan *plan, int value, const ft_lower_options *options)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value && reads_quantized(plan, &plan->op[i], j, options))
                return true;
    return false;
}

/* Let every consumer that can read quantized values read `quantized`. */
static void redirect_quantized_readers(ft_plan *plan, int value, int quantized,
                                       const ft_lower_options *options)
{
    for (int i = 0; i < plan->nop; i++)
        for (int j = 0; j < FT_MAX_IN; j++)
            if (plan->op[i].in[j] == value && reads_quantized(plan, &plan->op[i], j, options))
                plan->op[i].in[j] = (int16_t) quantized;
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

/* Split a point into its float and its quantized value, which takes the name. */
static int split_point(ft_plan *plan, int value, const ft_lower_options *options)
{
    ft_value quantized = plan->value[value];
    quantized.dtype = options->mode == FT_MODE_INT8 ? FT_I8 : FT_F32;
    quantized.scale = options->scale[value];
    quantized.dynamic = quantized.scale <= 0.0f;
    ft_value_append_suffix(&plan->value[value], ".float");
    plan->value[value].point = false;
    return ft_plan_add_value(plan, &quantized);
}

/* In an int8 residual stream, consumers that need floats read the dequantized value. */
static bool dequantize_for_float_readers(ft_plan *plan, int value, int quantized, int quantize)
{
    if (ft_plan_uses(plan, value) == 1)
        return true;
    ft_value float_value = plan->value[value];
    memcpy(float_value.name, plan->value[quantized].name, sizeof float_value.name);
    ft_value_append_suffix(&float_value, ".back");
    int dequantized = ft_plan_add_value(plan, &float_value);
    if (dequantized < 0)
        return false;
    redirect_all_readers(plan, value, dequantized);
    plan->op[quantize].in[0] = (int16_t) value;
    ft_op op = ft_op_init(FT_OP_DEQUANTIZE);
    op.in[0] = (int16_t) quantized;
    op.out = (int16_t) dequantized;
    return ft_lower_insert(plan, quantize + 1, &op);
}

static bool quantize_point(ft_plan *plan, int value, const ft_lower_options *options)
{
    if (!options->int8_residual && !has_quantized_readers(plan, value, options))
        return true;
    int quantized = split_point(plan, value, options);
    if (quantized < 0)
        return false;
    redirect_quantized_readers(plan, value, quantized, options);
    int at = ft_plan_producer(plan, value) + 1;
    ft_op op = ft_op_init(FT_OP_QUANTIZE);
    op.in[0] = (int16_t) value;
    op.quantized = (int16_t) quantized;
    op.weight[FT_WEIGHT_SMOOTHING] =
        (int16_t) ft_plan_find_smoothing(plan, plan->value[quantized].name);
    return ft_lower_insert(plan, at, &op) &&
           (!options->int8_residual || dequantize_for_float_readers(plan, value, quantized, at));
}

/* Inner points are skipped: their kernels compute a scale per row. */
bool ft_lower_quantize(ft_plan *plan, const ft_lower_options *options)
{
    bool ok = true;
    for (int i = plan->nvalue - 1; i >= 0 && ok; i--) {
        if (plan->value[i].point && !plan->value[i].inner)
            ok = quantize_point(plan, i, options);
    }
    return ok;
}

/* ---- Fold quantize ------------------------------------------------------------------------ */

/*
 * Whether an operation can do the work of a QUANTIZE that reads its result; `with_float`: and write
 * the result too.  Only an operation that processes complete rows can write values with dynamic
 * scales.
 */
static bool can_quantize(const ft_plan *plan, const ft_op *op, const ft_op *quantize,
                         bool with_float)
{
    const ft_op_info *info = ft_op_info_of(op->kind);
    bool multiplies = info->storage == FT_STORAGE_ONE;
    unsigned needed = FT_CAN_QUANTIZE | (with_float ? FT_CAN_BOTH : 0) |
                      (plan->value[quantize->quantized].dynamic ? FT_CAN_DYNAMIC : 0) |
                      (quantize->weight[FT_WEIGHT_SMOOTHING] >= 0 ? FT_CAN_SMOOTH : 0);
    return (info->writes & needed) == needed &&
           (!multiplies || ft_value_is_quantized(&plan->value[op->in[0]]));
}

/* Merge QUANTIZE into the producer of its input. */
static bool fold_quantize(ft_plan *plan, int index)
{
    const ft_op *quantize_op = &plan->op[index];
    if (quantize_op->kind != FT_OP_QUANTIZE)
        return false;
    int producer_index = ft_plan_producer(plan, quantize_op->in[0]);
    bool only_reader = ft_plan_uses(plan, quantize_op->in[0]) == 1;
    if (producer_index < 0 || plan->op[producer_index].out != quantize_op->in[0] ||
        !can_quantize(plan, &plan->op[producer_index], quantize_op, !only_reader))
        return false;
    ft_op *producer = &plan->op[producer_index];
    producer->quantized = quantize_op->quantized;
    if (quantize_op->weight[FT_WEIGHT_SMOOTHING] >= 0)
        producer->weight[FT_WEIGHT_SMOOTHING] = quantize_op->weight[FT_WEIGHT_SMOOTHING];
    if (only_reader)
        producer->out = -1;
    return true;
}

void ft_lower_fold_quantize(ft_plan *plan)
{
    for (int i = plan->nop - 1; i >= 0; i--)
        if (fold_quantize(plan, i))
            ft_lower_remove(plan, i);
}
