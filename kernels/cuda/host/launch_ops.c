/*
 * launch_ops.c - launches the operations of a plan, and fusion groups as one kernel where a kernel
 * supports them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cuda/fused_kernels.h"
#include "kernels/cuda/host/exec.h"
#include "runtime/error.h"

#include <assert.h>
#include <stdio.h>

static int (*const kernels[])(const ft_cuda_args *) = {
#define X(NAME, name, ...) [FT_OP_##NAME] = ft_cuda_##name,
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
    batch->decode_step = l->bucket->is_decode;
    batch->few_kv_pages = l->bucket->few_kv_pages;
    batch->selected = l->bucket->selected;
    batch->selected_rows = ints_at(exec, l->at.selected_rows);
    if (l->bucket->samples)
        batch->sampling =
            (const ft_sampling_params *) (const void *) (exec->inputs + l->at.sampling);
    batch->groups = l->bucket->beam_groups;
    batch->widest = l->bucket->max_beams;
    batch->beams = (const ft_beam_params *) (const void *) (exec->inputs + l->at.beams);
    batch->cross_kv_last = ints_at(exec, l->at.cross_kv_last);
    batch->cross_kv_pages = ints_at(exec, l->at.cross_kv_pages);
    batch->max_cross_kv_pages = exec->limits.cross_kv / FT_PAGE_TOKENS;
    batch->cross_kv = l->bucket->cross_kv;
    batch->beam_width = l->bucket->n_beams;
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
        .blocks = (const ft_cuda_query_tile *) (const void *) (exec->inputs + l.at.query_tiles),
        .n_query_tiles = bucket->query_tiles,
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

static ft_view view_of(const ft_cuda_launch_context *l, int value)
{
    if (value < 0)
        return (ft_view){ 0 };
    const ft_value *v = &l->exec->plan->value[value];
    return (ft_view){
        .data = v->input != FT_BATCH_NONE ? l->exec->inputs + l->at.input[v->input]
                                          : l->exec->arena + v->offset,
        .rows = rows_of(l, v),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
        .scales = v->dynamic ? ft_cuda_row_scales(l->exec, v) : NULL,
    };
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
        .quantized = view_of(l, op->quantized),
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
    int observed = ft_op_observed(op);
    if (exec->counting && observed >= 0 && exec->counts[observed].key != NULL)
        args.counts = &exec->counts[observed];
    return args;
}

/* Convert the result of a launch; an error names the output of the operation. */
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
    const ft_cuda_bucket *bucket = l->bucket;
    if (ft_op_is_idle(op->kind, !bucket->is_decode, bucket->samples, bucket->beam_groups > 0))
        return FT_OK;
    ft_cuda_args args = args_of(l, op);
    return status_of(l, kernels[op->kind](&args), op, err);
}

/* ---- Fusion groups ------------------------------------------------------------------------ */

enum { MAX_GROUP_OPS = FT_GROUP_LINEARS + 2 };

/* A fusion group and the arguments of its operations. */
typedef struct group_args {
    ft_cuda_args args[MAX_GROUP_OPS];
    ft_cuda_group group;
} group_args;

static void collect_linears(group_args *out, const ft_fusion_group *group)
{
    ft_cuda_group *g = &out->group;
    g->norm = group->norm ? &out->args[0] : NULL;
    g->linears = ft_group_linears(group);
    for (int i = 0; i < g->linears; i++)
        g->linear[i] = &out->args[group->norm + i];
    g->gate = group->gate ? &out->args[group->count - 1] : NULL;
    g->contiguous = group->contiguous;
    g->result_stride = group->result_stride;
}

static void gather_group(group_args *out, const ft_cuda_launch_context *l,
                         const ft_fusion_group *group)
{
    assert(group->count <= MAX_GROUP_OPS);
    out->group = (ft_cuda_group){ .kind = group->kind };
    for (int i = 0; i < group->count; i++)
        out->args[i] = args_of(l, &l->exec->plan->op[group->first + i]);
    if (group->kind == FT_FUSION_LINEAR) {
        collect_linears(out, group);
    } else {
        out->group.store = &out->args[0];
        out->group.attend = &out->args[1];
    }
}

/* Launch operations first .. end - 1 one by one. */
static ft_status run_separately(const ft_cuda_launch_context *l, int first, int end, ft_error *err)
{
    for (int i = first; i < end; i++)
        FT_TRY(run_op(l, &l->exec->plan->op[i], err));
    return FT_OK;
}

/* Launch the first kernel that supports the group; operations it leaves out run one by one. */
static ft_status run_group(const ft_cuda_launch_context *l, const ft_fusion_group *group,
                           ft_error *err)
{
    group_args all;
    ft_cuda_group fused;
    gather_group(&all, l, group);
    const ft_cuda_fused_kernel *kernel = ft_cuda_fused_kernel_for(&all.group, &fused);
    int first = group->first, end = first + group->count;
    if (kernel == NULL)
        return run_separately(l, first, end, err);
    int begin = first + (fused.norm == NULL && all.group.norm != NULL);
    int rest = end - (fused.gate == NULL && all.group.gate != NULL);
    const ft_op *reported = fused.kind == FT_FUSION_LINEAR ? fused.linear[0]->op : fused.attend->op;
    FT_TRY(run_separately(l, first, begin, err));
    FT_TRY(status_of(l, kernel->launch(&fused), reported, err));
    return run_separately(l, rest, end, err);
}

ft_status ft_cuda_run_ops(const ft_cuda_launch_context *l, int first, int end, ft_error *err)
{
    const ft_plan *plan = l->exec->plan;
    for (int op = first, next = 0; op < end;) {
        while (next < plan->ngroup && plan->group[next].first < op)
            next++;
        const ft_fusion_group *group = next < plan->ngroup ? &plan->group[next] : NULL;
        bool grouped = group != NULL && group->first == op;
        FT_TRY(grouped ? run_group(l, group, err) : run_op(l, &plan->op[op], err));
        op += grouped ? group->count : 1;
    }
    return FT_OK;
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

/* The linears that start at operation `op`: those of its fusion group, or that one alone. */
static void gather_linears_at(group_args *out, const ft_cuda_launch_context *l, int op)
{
    const ft_fusion_group *group = ft_group_of(l->exec->plan, op);
    ft_fusion_group linear_group = { .kind = FT_FUSION_LINEAR, .first = op, .count = 1 };
    if (group != NULL && ft_group_first_linear(group) == op) {
        linear_group.count = ft_group_linears(group);
        linear_group.contiguous = group->contiguous;
        linear_group.result_stride = group->result_stride;
    }
    gather_group(out, l, &linear_group);
}

int ft_cuda_describe_gemm(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size)
{
    snprintf(text, size, "%s", "");
    if (!ft_op_is_gemm(exec->plan->op[op].kind))
        return 0;
    exec->counting = exec->exact_shape = false;
    ft_cuda_bucket bucket = ft_cuda_bucket_of(exec, batch);
    ft_cuda_launch_context l = ft_cuda_launch_context_of(exec, &bucket);
    group_args linear_group;
    gather_linears_at(&linear_group, &l, op);
    return ft_cuda_linear_explain(&linear_group.group, text, size);
}
