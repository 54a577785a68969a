/*
 * op_cost.c - arithmetic operations and memory traffic of an operation, by column WORK of ops.def.
 *
 * Every operation reads its operands and writes its results.  This file adds the cost of GEMMs,
 * weights, and keys and values of the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/op.h"

#include <math.h>

static double rows_of(const ft_value *value, const ft_batch *batch)
{
    return (double) (ft_batch_rows(batch, value->rows));
}

static double bytes_of(const ft_plan *plan, int value, const ft_batch *batch)
{
    if (value < 0)
        return 0.0;
    const ft_value *v = &plan->value[value];
    return rows_of(v, batch) * v->cols * (double) ft_dtype_size(v->dtype);
}

static double tokens_of(const ft_batch *batch, size_t sequence)
{
    return (double) (batch->start[sequence + 1] - batch->start[sequence]);
}

/* ---- Keys and values ---------------------------------------------------------------------- */

/* Rows of the cross-attention KV; beams of a search share theirs. */
static double cross_rows(const ft_batch *batch)
{
    double rows = 0.0;
    for (size_t i = 0; i < batch->sequences; i += (batch->beam_width > 1 ? batch->beam_width : 1))
        rows += batch->cross_kv[i];
    return rows;
}

/* Rows of the cache that an operation writes or attends to. */
static double cached_rows(const ft_op *op, const ft_batch *batch)
{
    double rows = 0.0;
    if (ft_op_info_of(op->kind)->work == FT_WORK_CACHE_WRITE)
        return (double) batch->tokens;
    if (op->attr.cross_kv)
        return cross_rows(batch);
    for (size_t i = 0; i < batch->sequences; i++) {
        double all = batch->n_past[i] + tokens_of(batch, i), window = op->attr.window;
        rows += window > 0.0 && window < all ? window : all;
    }
    return rows;
}

static double cache_bytes(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    double row = 0.0;
    if (!ft_op_uses_cache(op->kind))
        return 0.0;
    for (int i = 0; i < FT_MAX_STATES; i++)
        if (op->state[i] >= 0) {
            const ft_value *v = &plan->value[op->state[i]];
            row += v->cols * (double) ft_dtype_size(v->dtype);
        }
    return row * cached_rows(op, batch);
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* The quantized values, and the scales and zero points of their groups. */
static double groupwise_bytes(const ft_weight *w)
{
    double count = (double) ft_groupwise_scale_count(&w->groupwise, w->rows, w->cols);
    return (double) ft_weight_bytes(w) + count * (w->groupwise.zero != NULL ? 3.0 : 2.0);
}

static double weight_bytes(const ft_plan *plan, const ft_op *op, int slot, const ft_batch *batch)
{
    if (op->weight[slot] < 0)
        return 0.0;
    const ft_weight *w = &plan->weight[op->weight[slot]];
    if (w->groupwise.scale != NULL)
        return groupwise_bytes(w);
    bool table = ft_op_info_of(op->kind)->work == FT_WORK_TABLE;
    double rows = (double) (table ? batch->tokens : w->rows);
    return rows * (double) w->cols * (double) ft_dtype_size(w->dtype);
}

/* ---- GEMMs -------------------------------------------------------------------------------- */

/* Both GEMMs of attention: every row of a sequence attends to all of its rows. */
static double attention_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += pow(tokens_of(batch, i), 2.0);
    return 4.0 * pairs * q->cols;
}

/* Every row attends to all tokens of its source. */
static double cross_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += tokens_of(batch, i) * batch->cross_kv[i];
    return 4.0 * pairs * q->cols;
}

/* Every row attends to itself and to all earlier tokens. */
static double causal_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        double own = tokens_of(batch, i);
        pairs += own * batch->n_past[i] + own * (own + 1.0) / 2.0;
    }
    return 4.0 * pairs * q->cols;
}

/* Each row of the input times `windows`, by the weight; convolutions include the padding. */
static double matrix_operations(const ft_plan *plan, const ft_op *op, const ft_batch *batch,
                                double windows)
{
    const ft_weight *w = &plan->weight[op->weight[0]];
    double rows = rows_of(&plan->value[op->in[0]], batch) * windows;
    return 2.0 * rows * (double) w->rows * (double) w->cols;
}

static double operations_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_conv *conv = &op->attr.conv;
    switch (ft_op_info_of(op->kind)->work) {
    case FT_WORK_MATRIX:
        return matrix_operations(plan, op, batch, 1.0);
    case FT_WORK_CONV:
        return matrix_operations(plan, op, batch,
                                 (double) ft_conv_out_size(conv, 0) * ft_conv_out_size(conv, 1));
    case FT_WORK_ATTENTION:
        return attention_operations(&plan->value[op->in[0]], batch);
    case FT_WORK_CACHE_READ:
        return op->attr.cross_kv ? cross_operations(&plan->value[op->in[0]], batch)
                                 : causal_operations(&plan->value[op->in[0]], batch);
    case FT_WORK_ROWS:
    case FT_WORK_TABLE:
    case FT_WORK_CACHE_WRITE:
        break;
    }
    return 0.0;
}

/* Whether the GEMM has int8 activations, quantized before it or by the kernel itself. */
static bool multiplies_int8(const ft_plan *plan, const ft_op *op)
{
    bool int8_activations =
        op->weight[0] >= 0 && plan->weight[op->weight[0]].groupwise.int8_activations;
    return int8_activations || plan->value[op->in[0]].dtype == FT_I8;
}

/* ------------------------------------------------------------------------------------------- */

ft_op_cost ft_op_cost_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    if (ft_op_is_idle(op->kind, !batch->decode_step, batch->sampling != NULL, batch->beams != NULL))
        return (ft_op_cost){ 0 };
    double operations = operations_of(plan, op, batch);
    bool int8 = operations > 0.0 && multiplies_int8(plan, op);
    ft_op_cost cost = { .int8_ops = int8 ? operations : 0.0,
                        .float_flops = int8 ? 0.0 : operations };
    for (int i = 0; i < FT_MAX_IN; i++)
        cost.bytes += bytes_of(plan, op->in[i], batch);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        cost.bytes += weight_bytes(plan, op, i, batch);
    cost.bytes += bytes_of(plan, op->out, batch) + bytes_of(plan, op->quantized, batch) +
                  bytes_of(plan, op->second, batch) + cache_bytes(plan, op, batch);
    return cost;
}
