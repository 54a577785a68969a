/*
 * time.c - timing of runs, and the cost model of operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/bench.h"

#include "kernels/layout.h"
#include "runtime/base/clock.h"
#include "runtime/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Time --------------------------------------------------------------------------------- */

bool ft_target_queues(const ft_target *target)
{
    return strcmp(target->backend->name, "cpu") != 0;
}

static ft_status run_once(const ft_target *target, ft_error *err)
{
    if (target->op < 0)
        return target->backend->run(target->exec, target->batch, NULL, err);
    return target->backend->run_op(target->exec, target->batch, target->op, err);
}

ft_status ft_target_time(const ft_target *target, int count, double *seconds, ft_error *err)
{
    double before = ft_seconds();
    for (int i = 0; i < count; i++)
        FT_TRY(run_once(target, err));
    FT_TRY(target->backend->wait(target->exec, err));
    *seconds = (ft_seconds() - before) / count;
    return FT_OK;
}

ft_status ft_target_warm(const ft_target *target, ft_error *err)
{
    double sum = 0.0, seconds;
    for (int runs = 0; runs < 2 || sum < 0.1; runs++, sum += seconds)
        FT_TRY(ft_target_time(target, 1, &seconds, err));
    return FT_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

ft_times ft_times_of(double *sample, size_t count)
{
    qsort(sample, count, sizeof *sample, ascending);
    return (ft_times){
        .median = (sample[(count - 1) / 2] + sample[count / 2]) / 2.0,
        .least = sample[0],
        .p95 = sample[(95 * count + 99) / 100 - 1],
    };
}

/* ---- Cost --------------------------------------------------------------------------------- */

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

/* Source tokens; the beams of a search share their source. */
static double remembered_rows(const ft_batch *batch)
{
    double rows = 0.0;
    for (size_t i = 0; i<batch->sequences; i += batch->lanes> 1 ? batch->lanes : 1)
        rows += batch->memory[i];
    return rows;
}

/* KV cache rows read or written: all tokens attended to, or the tokens stored. */
static double cached_rows(const ft_op *op, const ft_batch *batch)
{
    double rows = 0.0;
    if (op->kind == FT_OP_STORE)
        return (double) batch->tokens;
    if (op->kind == FT_OP_ATTEND && op->attr.memory)
        return remembered_rows(batch);
    for (size_t i = 0; op->kind == FT_OP_ATTEND && i < batch->sequences; i++) {
        double own = (double) (batch->start[i + 1] - batch->start[i]);
        double all = batch->past[i] + own, window = op->attr.window;
        rows += window > 0.0 && window < all ? window : all;
    }
    return rows;
}

static double cache_bytes(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    double row = 0.0;
    if (op->kind != FT_OP_STORE && op->kind != FT_OP_ATTEND)
        return 0.0;
    for (int i = 0; i < FT_MAX_STATES; i++)
        if (op->state[i] >= 0) {
            const ft_value *v = &plan->value[op->state[i]];
            row += v->cols * (double) ft_dtype_size(v->dtype);
        }
    return row * cached_rows(op, batch);
}

/* Group-wise quantized values, scales and zero points. */
static double block_bytes(const ft_weight *w)
{
    double count = (double) ft_blocks_count(&w->blocks, w->rows, w->cols);
    return (double) ft_weight_bytes(w) + count * (w->blocks.zero != NULL ? 3.0 : 2.0);
}

/* Of an embedding table only one row per token is read. */
static double weight_bytes(const ft_plan *plan, const ft_op *op, int slot, const ft_batch *batch)
{
    if (op->weight[slot] < 0)
        return 0.0;
    const ft_weight *w = &plan->weight[op->weight[slot]];
    if (w->blocks.scale != NULL)
        return block_bytes(w);
    double rows = (double) (op->kind == FT_OP_EMBED ? batch->tokens : w->rows);
    return rows * (double) w->cols * (double) ft_dtype_size(w->dtype);
}

/* Q.K^T and P.V of bidirectional attention. */
static double attention_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += pow((double) (batch->start[i + 1] - batch->start[i]), 2.0);
    return 4.0 * pairs * q->cols;
}

/* Cross-attention: every query with all source tokens. */
static double memory_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += (double) (batch->start[i + 1] - batch->start[i]) * batch->memory[i];
    return 4.0 * pairs * q->cols;
}

/* Causal attention: every query with itself and all tokens before it. */
static double causal_operations(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        double own = (double) (batch->start[i + 1] - batch->start[i]);
        pairs += own * batch->past[i] + own * (own + 1.0) / 2.0;
    }
    return 4.0 * pairs * q->cols;
}

/* All windows of all images, including padding. */
static double conv_operations(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_weight *w = &plan->weight[op->weight[0]];
    const ft_conv *conv = &op->attr.conv;
    double windows =
        rows_of(&plan->value[op->in[0]], batch) * ft_conv_size(conv, 0) * ft_conv_size(conv, 1);
    return 2.0 * windows * (double) w->rows * (double) w->cols;
}

static double product_operations(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    if (op->kind == FT_OP_ATTENTION)
        return attention_operations(&plan->value[op->in[0]], batch);
    if (op->kind == FT_OP_ATTEND)
        return op->attr.memory ? memory_operations(&plan->value[op->in[0]], batch)
                               : causal_operations(&plan->value[op->in[0]], batch);
    if (op->kind == FT_OP_CONV)
        return conv_operations(plan, op, batch);
    if (op->kind != FT_OP_LINEAR)
        return 0.0;
    ft_product p = ft_product_of(plan, op, batch);
    return 2.0 * (double) p.m * (double) p.n * (double) p.k;
}

/* Operations without work in this batch. */
static bool is_idle(const ft_op *op, const ft_batch *batch)
{
    return (op->kind == FT_OP_NOTE && batch->step) ||
           (op->kind == FT_OP_CHOOSE && batch->choice == NULL) ||
           (op->kind == FT_OP_BEAM && batch->beams == NULL);
}

/* The inputs are int8, or are quantized before the GEMM. */
static bool multiplies_codes(const ft_plan *plan, const ft_op *op)
{
    bool by_codes = op->weight[0] >= 0 && plan->weight[op->weight[0]].blocks.by_codes;
    return by_codes || plan->value[op->in[0]].dtype == FT_I8;
}

ft_work ft_work_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    if (is_idle(op, batch))
        return (ft_work){ 0 };
    double operations = product_operations(plan, op, batch);
    bool int8 = operations > 0.0 && multiplies_codes(plan, op);
    ft_work work = { .int8 = int8 ? operations : 0.0, .real = int8 ? 0.0 : operations };
    for (int i = 0; i < FT_MAX_IN; i++)
        work.bytes += bytes_of(plan, op->in[i], batch);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        work.bytes += weight_bytes(plan, op, i, batch);
    work.bytes += bytes_of(plan, op->out, batch) + bytes_of(plan, op->codes, batch) +
                  bytes_of(plan, op->second, batch) + cache_bytes(plan, op, batch);
    return work;
}

double ft_work_roof(const ft_work *work, const ft_ceilings *ceilings)
{
    double seconds = work->bytes / ceilings->copy;
    if (work->int8 > 0.0)
        seconds = fmax(seconds, work->int8 / ceilings->int8);
    if (work->real > 0.0)
        seconds = fmax(seconds, work->real / ceilings->real);
    return seconds;
}
