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

bool ft_bench_is_async(const ft_bench_target *target)
{
    return strcmp(target->backend->name, "cpu") != 0;
}

static ft_status run_once(const ft_bench_target *target, ft_error *err)
{
    if (target->op < 0)
        return target->backend->run(target->exec, target->batch, NULL, err);
    return target->backend->run_op(target->exec, target->batch, target->op, err);
}

ft_status ft_bench_time_runs(const ft_bench_target *target, int count, double *seconds,
                             ft_error *err)
{
    double before = ft_monotonic_seconds();
    for (int i = 0; i < count; i++)
        FT_TRY(run_once(target, err));
    FT_TRY(target->backend->wait(target->exec, err));
    *seconds = (ft_monotonic_seconds() - before) / count;
    return FT_OK;
}

ft_status ft_bench_warm_up(const ft_bench_target *target, ft_error *err)
{
    double sum = 0.0, seconds;
    for (int runs = 0; runs < 2 || sum < 0.1; runs++, sum += seconds)
        FT_TRY(ft_bench_time_runs(target, 1, &seconds, err));
    return FT_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

ft_bench_times ft_bench_summarize(double *sample, size_t count)
{
    qsort(sample, count, sizeof *sample, ascending);
    return (ft_bench_times){
        .median = (sample[(count - 1) / 2] + sample[count / 2]) / 2.0,
        .min = sample[0],
        .p95 = sample[(95 * count + 99) / 100 - 1],
    };
}

/* ---- Cost --------------------------------------------------------------------------------- */

static double value_rows(const ft_value *value, const ft_batch *batch)
{
    return (double) (ft_batch_rows(batch, value->rows));
}

static double value_bytes(const ft_plan *plan, int value, const ft_batch *batch)
{
    if (value < 0)
        return 0.0;
    const ft_value *v = &plan->value[value];
    return value_rows(v, batch) * v->cols * (double) ft_dtype_size(v->dtype);
}

/* Source tokens; the beams of a search share their source. */
static double cross_kv_rows(const ft_batch *batch)
{
    double rows = 0.0;
    for (size_t i = 0; i<batch->sequences; i += batch->lanes> 1 ? batch->lanes : 1)
        rows += batch->cross_kv[i];
    return rows;
}

/* KV cache rows read or written: all tokens attended to, or the tokens stored. */
static double kv_cache_rows(const ft_op *op, const ft_batch *batch)
{
    double rows = 0.0;
    if (op->kind == FT_OP_STORE_KV)
        return (double) batch->tokens;
    if (op->kind == FT_OP_ATTEND_KV && op->attr.cross_kv)
        return cross_kv_rows(batch);
    for (size_t i = 0; op->kind == FT_OP_ATTEND_KV && i < batch->sequences; i++) {
        double own = (double) (batch->start[i + 1] - batch->start[i]);
        double all = batch->n_past[i] + own, window = op->attr.window;
        rows += window > 0.0 && window < all ? window : all;
    }
    return rows;
}

static double kv_cache_bytes(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    double row = 0.0;
    if (op->kind != FT_OP_STORE_KV && op->kind != FT_OP_ATTEND_KV)
        return 0.0;
    for (int i = 0; i < FT_MAX_STATES; i++)
        if (op->state[i] >= 0) {
            const ft_value *v = &plan->value[op->state[i]];
            row += v->cols * (double) ft_dtype_size(v->dtype);
        }
    return row * kv_cache_rows(op, batch);
}

/* Group-wise quantized values, scales and zero points. */
static double groupwise_bytes(const ft_weight *w)
{
    double count = (double) ft_groupwise_scale_count(&w->blocks, w->rows, w->cols);
    return (double) ft_weight_bytes(w) + count * (w->blocks.zero != NULL ? 3.0 : 2.0);
}

/* Of an embedding table only one row per token is read. */
static double weight_bytes(const ft_plan *plan, const ft_op *op, int slot, const ft_batch *batch)
{
    if (op->weight[slot] < 0)
        return 0.0;
    const ft_weight *w = &plan->weight[op->weight[slot]];
    if (w->blocks.scale != NULL)
        return groupwise_bytes(w);
    double rows = (double) (op->kind == FT_OP_EMBED ? batch->tokens : w->rows);
    return rows * (double) w->cols * (double) ft_dtype_size(w->dtype);
}

/* Q.K^T and P.V of bidirectional attention. */
static double attention_flops(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += pow((double) (batch->start[i + 1] - batch->start[i]), 2.0);
    return 4.0 * pairs * q->cols;
}

/* Cross-attention: every query with all source tokens. */
static double cross_attention_flops(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++)
        pairs += (double) (batch->start[i + 1] - batch->start[i]) * batch->cross_kv[i];
    return 4.0 * pairs * q->cols;
}

/* Causal attention: every query with itself and all tokens before it. */
static double causal_attention_flops(const ft_value *q, const ft_batch *batch)
{
    double pairs = 0.0;
    for (size_t i = 0; i < batch->sequences; i++) {
        double own = (double) (batch->start[i + 1] - batch->start[i]);
        pairs += own * batch->n_past[i] + own * (own + 1.0) / 2.0;
    }
    return 4.0 * pairs * q->cols;
}

/* All windows of all images, including padding. */
static double conv_flops(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_weight *w = &plan->weight[op->weight[0]];
    const ft_conv *conv = &op->attr.conv;
    double windows = value_rows(&plan->value[op->in[0]], batch) * ft_conv_out_size(conv, 0) *
                     ft_conv_out_size(conv, 1);
    return 2.0 * windows * (double) w->rows * (double) w->cols;
}

static double gemm_flops(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    if (op->kind == FT_OP_ATTENTION)
        return attention_flops(&plan->value[op->in[0]], batch);
    if (op->kind == FT_OP_ATTEND_KV)
        return op->attr.cross_kv ? cross_attention_flops(&plan->value[op->in[0]], batch)
                                 : causal_attention_flops(&plan->value[op->in[0]], batch);
    if (op->kind == FT_OP_CONV)
        return conv_flops(plan, op, batch);
    if (op->kind != FT_OP_LINEAR)
        return 0.0;
    ft_bench_gemm p = ft_bench_gemm_of(plan, op, batch);
    return 2.0 * (double) p.m * (double) p.n * (double) p.k;
}

/* Operations without work in this batch. */
static bool is_idle(const ft_op *op, const ft_batch *batch)
{
    return (op->kind == FT_OP_RECORD_TOKENS && batch->step) ||
           (op->kind == FT_OP_SAMPLE && batch->choice == NULL) ||
           (op->kind == FT_OP_BEAM_SEARCH && batch->beams == NULL);
}

/* The inputs are int8, or are quantized before the GEMM. */
static bool is_int8_gemm(const ft_plan *plan, const ft_op *op)
{
    bool int8_activations =
        op->weight[0] >= 0 && plan->weight[op->weight[0]].blocks.int8_activations;
    return int8_activations || plan->value[op->in[0]].dtype == FT_I8;
}

ft_op_cost ft_op_cost_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    if (is_idle(op, batch))
        return (ft_op_cost){ 0 };
    double flops = gemm_flops(plan, op, batch);
    bool int8 = flops > 0.0 && is_int8_gemm(plan, op);
    ft_op_cost work = { .int8_ops = int8 ? flops : 0.0, .float_flops = int8 ? 0.0 : flops };
    for (int i = 0; i < FT_MAX_IN; i++)
        work.bytes += value_bytes(plan, op->in[i], batch);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        work.bytes += weight_bytes(plan, op, i, batch);
    work.bytes += value_bytes(plan, op->out, batch) + value_bytes(plan, op->codes, batch) +
                  value_bytes(plan, op->second, batch) + kv_cache_bytes(plan, op, batch);
    return work;
}

double ft_roofline_seconds(const ft_op_cost *work, const ft_roofline *roofline)
{
    double seconds = work->bytes / roofline->copy;
    if (work->int8_ops > 0.0)
        seconds = fmax(seconds, work->int8_ops / roofline->int8_ops);
    if (work->float_flops > 0.0)
        seconds = fmax(seconds, work->float_flops / roofline->float_flops);
    return seconds;
}
