/*
 * launch_ops.c - the steps of a plan: operations with their arguments, and chains of them as one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdio.h>

static int (*const kernels[])(const ft_cuda_args *) = {
#define X(NAME, name) [FT_OP_##NAME] = ft_cuda_##name,
#include "kernels/ops.def"
#undef X
};

/* ---- Operations --------------------------------------------------------------------------- */

static const int32_t *ints_at(const ft_exec *exec, size_t at)
{
    return (const int32_t *) (const void *) (exec->inputs + at);
}

static void add_kv_cache(ft_cuda_batch *batch, const ft_cuda_launch_context *l)
{
    const ft_exec *exec = l->exec;
    batch->seq_id = ints_at(exec, l->at.seq_id);
    batch->n_past = ints_at(exec, l->at.n_past);
    batch->n_tokens = ints_at(exec, l->at.n_tokens);
    batch->slot = ints_at(exec, l->at.slot);
    batch->pages = ints_at(exec, l->at.pages);
    batch->max_pages = exec->limits.context / FT_PAGE_TOKENS;
    batch->context = l->bucket->context;
    batch->capacity = exec->limits.context;
    batch->step = l->bucket->step;
    batch->selected = l->bucket->selected;
    batch->selected_rows = ints_at(exec, l->at.selected_rows);
    if (l->bucket->samples)
        batch->choice = (const ft_sampling_params *) (const void *) (exec->inputs + l->at.choice);
    batch->groups = l->bucket->groups;
    batch->widest = l->bucket->widest;
    batch->beams = (const ft_beam_params *) (const void *) (exec->inputs + l->at.beams);
    batch->cross_kv_last = ints_at(exec, l->at.cross_kv_last);
    batch->cross_kv_pages = ints_at(exec, l->at.cross_kv_pages);
    batch->max_cross_kv_pages = exec->limits.cross_kv / FT_PAGE_TOKENS;
    batch->cross_kv = l->bucket->cross_kv;
    batch->lanes = l->bucket->lanes;
}

ft_cuda_launch_context ft_cuda_launch_context_of(const ft_exec *exec, const ft_cuda_bucket *bucket)
{
    ft_cuda_launch_context l = { .exec = exec,
                                 .bucket = bucket,
                                 .at = ft_cuda_layout_inputs(exec, bucket) };
    l.batch = (ft_cuda_batch){
        .tokens = bucket->tokens,
        .sequences = bucket->sequences,
        .start = ints_at(exec, l.at.start),
        .blocks = (const ft_cuda_query_tile *) (const void *) (exec->inputs + l.at.blocks),
        .n_query_tiles = bucket->blocks,
        .batch_invariant = exec->plan->batch_invariant,
    };
    if (exec->has_cache)
        add_kv_cache(&l.batch, &l);
    return l;
}

static size_t rows_of(const ft_cuda_launch_context *l, const ft_value *v)
{
    const ft_cuda_bucket *b = l->bucket;
    if (v->state)
        return ft_limits_rows(&l->exec->limits, v->rows);
    return v->rows == FT_TOKENS ? b->tokens : v->rows == FT_SELECTED ? b->selected : b->sequences;
}

static ft_cuda_view view_of(const ft_cuda_launch_context *l, int value)
{
    if (value < 0)
        return (ft_cuda_view){ 0 };
    const ft_value *v = &l->exec->plan->value[value];
    ft_cuda_view view = {
        .data = l->exec->arena + v->offset,
        .rows = rows_of(l, v),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
        .scales = v->dynamic ? ft_cuda_row_scales(l->exec, v) : NULL,
    };
    for (int i = 0; i < l->exec->ninputs; i++)
        if (l->exec->input[i] == value)
            view.data = l->exec->inputs + l->at.value[i];
    return view;
}

static ft_cuda_args args_of(const ft_cuda_launch_context *l, const ft_op *op)
{
    const ft_exec *exec = l->exec;
    ft_cuda_args args = {
        .props = &exec->device->props,
        .stream = exec->stream,
        .blas = exec->blas,
        .op = op,
        .out = view_of(l, op->out),
        .codes = view_of(l, op->codes),
        .second = view_of(l, op->second),
        .batch = &l->batch,
        .scratch = exec->scratch,
        .scratch_bytes = exec->scratch_bytes,
        .counters = exec->counters,
        .mailbox = { exec->mailbox, exec->limits.selected, exec->count },
    };
    for (int i = 0; i < FT_MAX_IN; i++)
        args.in[i] = view_of(l, op->in[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        args.state[i] = view_of(l, op->state[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args.weight[i] = op->weight[i] < 0 ? NULL : &exec->plan->weight[op->weight[i]];
    args.per = op->in[0] < 0 ? FT_TOKENS : exec->plan->value[op->in[0]].rows;
    int observed = op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
    if (exec->counting && observed >= 0 && exec->counts[observed].key != NULL)
        args.counts = &exec->counts[observed];
    return args;
}

/* A run that continues sequences has noted its tokens; one that chooses nothing remembers nothing.
 */
static bool is_skipped(const ft_cuda_launch_context *l, const ft_op *op)
{
    return (op->kind == FT_OP_RECORD_TOKENS && l->bucket->step) ||
           (op->kind == FT_OP_SAMPLE && !l->bucket->samples) ||
           (op->kind == FT_OP_BEAM_SEARCH && l->bucket->groups == 0);
}

/* Of a launch for this operation. */
static ft_status status_of(const ft_cuda_launch_context *l, int code, const ft_op *op,
                           ft_error *err)
{
    const ft_exec *exec = l->exec;
    return code == 0 ? FT_OK
                     : ft_cuda_fail(err, &exec->device->props, code,
                                    exec->plan->value[ft_op_label_value(op)].name);
}

static ft_status run_op(const ft_cuda_launch_context *l, const ft_op *op, ft_error *err)
{
    if (is_skipped(l, op))
        return FT_OK;
    ft_cuda_args args = args_of(l, op);
    return status_of(l, kernels[op->kind](&args), op, err);
}

/* ---- Steps -------------------------------------------------------------------------------- */

ft_status ft_cuda_build_launches(ft_exec *exec, ft_error *err)
{
    const ft_plan *plan = exec->plan;
    exec->steps = ft_calloc((size_t) plan->nop, sizeof *exec->steps);
    if (exec->steps == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to run a plan");
    for (int i = 0; i < plan->nop; i += exec->steps[exec->nsteps++].count)
        exec->steps[exec->nsteps] = ft_fusion_at(plan, i);
    return FT_OK;
}

static_assert((int) FT_FUSION_MAX_LINEARS <= (int) FT_CUDA_MAX_FUSED,
              "a product has room for the linears of a chain");

/* The linears of a product, with room for their arguments. */
typedef struct linear_group {
    int first, count;
    ft_cuda_args args[FT_CUDA_MAX_FUSED];
    const ft_cuda_args *group[FT_CUDA_MAX_FUSED];
} linear_group;

static void collect_linears(linear_group *some, const ft_cuda_launch_context *l,
                            const ft_fusion *step)
{
    some->first = step->first + step->norm;
    some->count = step->count - step->norm - step->gate;
    for (int i = 0; i < some->count; i++) {
        some->args[i] = args_of(l, &l->exec->plan->op[some->first + i]);
        some->group[i] = &some->args[i];
    }
}

/* FT_OK and *done, unless there is no kernel for these operations as one. */
static ft_status report_launch(const ft_cuda_launch_context *l, int code, const ft_op *op,
                               bool *done, ft_error *err)
{
    *done = code != (int) cudaErrorNotSupported;
    return *done ? status_of(l, code, op, err) : FT_OK;
}

/* Operations first .. end - 1, one by one. */
static ft_status run_separately(const ft_cuda_launch_context *l, int first, int end, ft_error *err)
{
    for (int i = first; i < end; i++)
        FT_TRY(run_op(l, &l->exec->plan->op[i], err));
    return FT_OK;
}

/* Linears with the norm before them, or the gate behind them, or both. */
static ft_status run_chain(const ft_cuda_launch_context *l, const linear_group *some, bool norm,
                           bool gate, bool *done, ft_error *err)
{
    const ft_op *linear = &l->exec->plan->op[some->first];
    ft_cuda_args before_args, after_args;
    *done = false;
    if (!norm && !gate)
        return FT_OK;
    if (norm)
        before_args = args_of(l, linear - 1);
    if (gate)
        after_args = args_of(l, linear + some->count);
    return report_launch(l,
                         ft_cuda_norm_linear_gate(norm ? &before_args : NULL, some->group,
                                                  some->count, gate ? &after_args : NULL),
                         linear, done, err);
}

/* As much of a product as there are kernels for: all of it, all but its norm, its linears. */
static ft_status run_linears(const ft_cuda_launch_context *l, const ft_fusion *step, ft_error *err)
{
    int end = step->first + step->count;
    bool done = false;
    linear_group some;
    collect_linears(&some, l, step);
    if (step->norm)
        FT_TRY(run_chain(l, &some, true, step->gate, &done, err));
    if (done)
        return FT_OK;
    FT_TRY(run_separately(l, step->first, some.first, err));
    FT_TRY(run_chain(l, &some, false, step->gate, &done, err));
    if (done)
        return FT_OK;
    if (some.count > 1)
        FT_TRY(report_launch(l, ft_cuda_linear_fused(some.group, some.count), some.args[0].op,
                             &done, err));
    return run_separately(l, done ? some.first + some.count : some.first, end, err);
}

static ft_status run_attention(const ft_cuda_launch_context *l, const ft_fusion *step,
                               ft_error *err)
{
    const ft_op *op = &l->exec->plan->op[step->first];
    ft_cuda_args store = args_of(l, &op[0]), attend = args_of(l, &op[1]);
    bool done;
    FT_TRY(report_launch(l, ft_cuda_store_attend(&store, &attend), attend.op, &done, err));
    return done ? FT_OK : run_separately(l, step->first, step->first + step->count, err);
}

ft_status ft_cuda_run_fused(const ft_cuda_launch_context *l, const ft_fusion *step, ft_error *err)
{
    if (step->kind == FT_FUSION_LINEARS)
        return run_linears(l, step, err);
    if (step->kind == FT_FUSION_ATTENTION)
        return run_attention(l, step, err);
    return run_separately(l, step->first, step->first + step->count, err);
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_cuda_run_op(ft_exec *exec, const ft_batch *batch, int op, ft_error *err)
{
    ft_cuda_bucket bucket = ft_cuda_bucket_of(exec, batch);
    ft_cuda_launch_context l = ft_cuda_launch_context_of(exec, &bucket);
    int code = (int) cudaSetDevice(exec->device->props.index);
    if (code != 0)
        return ft_cuda_fail(err, &exec->device->props, code, "an operation");
    return run_op(&l, &exec->plan->op[op], err);
}

/* The product that begins with this linear, or with a norm before it; else the linear alone. */
static ft_fusion linear_chain_of(const ft_exec *exec, int op)
{
    for (int i = 0; i < exec->nsteps; i++) {
        const ft_fusion *step = &exec->steps[i];
        if (step->kind == FT_FUSION_LINEARS && step->first + step->norm == op)
            return *step;
    }
    return (ft_fusion){ .kind = FT_FUSION_LINEARS, .first = op, .count = 1 };
}

int ft_cuda_explain(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size)
{
    snprintf(text, size, "%s", "");
    if (exec->plan->op[op].kind != FT_OP_LINEAR)
        return 0;
    exec->counting = false;
    ft_cuda_bucket bucket = ft_cuda_bucket_of(exec, batch);
    ft_cuda_launch_context l = ft_cuda_launch_context_of(exec, &bucket);
    ft_fusion step = linear_chain_of(exec, op);
    linear_group some;
    collect_linears(&some, &l, &step);
    return ft_cuda_linear_explain(some.group, some.count, text, size);
}
