/*
 * backend.c - the CPU backend: device memory, and the loop that executes a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/blas.h"
#include "kernels/cpu/base/cpu.h"
#include "kernels/cpu/gemm/int8/gemm_i8.h"
#include "kernels/cpu/batch_parallel.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ft_device {
    ft_isa isa;
};

struct ft_exec {
    const ft_plan *plan;
    ft_isa isa;
    ft_limits limits;
    char *arena;
    ft_shares *shares; /* NULL: all threads work on each operation together */
    char *scratch;
    size_t scratch_bytes; /* one scratch buffer for all threads of an operation, ... */
    size_t share_scratch; /* ... or one of this size per shard */
};

static void (*const kernels[])(const ft_args *) = {
#define X(NAME, name) [FT_OP_##NAME] = ft_cpu_##name,
#include "kernels/ops.def"
#undef X
};

static bool describe(int index, ft_device_info *out)
{
    ft_isa isa;
    ft_error err;
    snprintf(out->name, sizeof out->name, "cpu");
    out->usable = ft_cpu_isa(&isa, &err) == FT_OK;
    if (out->usable)
        snprintf(out->detail, sizeof out->detail, "%s; float by OpenBLAS for %s", ft_isa_name(isa),
                 ft_blas_core());
    else
        snprintf(out->detail, sizeof out->detail, "%.120s", err.text);
    return index == 0 && out->usable;
}

static ft_status open_cpu(ft_device **out, int index, ft_error *err)
{
    ft_isa isa;
    if (index != 0)
        return ft_fail(err, FT_EDEVICE, "device cpu:%d: there is one cpu device", index);
    FT_TRY(ft_cpu_isa(&isa, err));
    *out = ft_array(1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a device");
    (*out)->isa = isa;
    return FT_OK;
}

static void close_cpu(ft_device *device)
{
    free(device);
}

/* Weights are used in place; nothing is copied. */
static ft_status upload(ft_device *device, ft_weight *weights, int count, ft_error *err)
{
    (void) device, (void) weights, (void) count, (void) err;
    return FT_OK;
}

static size_t scratch_of(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    switch (op->kind) {
    case FT_OP_LINEAR:
        return ft_cpu_linear_scratch(plan, op, limits);
    case FT_OP_ATTENTION:
        return ft_cpu_attention_scratch(plan, op, limits);
    case FT_OP_PATCHES:
        return ft_cpu_patches_scratch(op, limits);
    case FT_OP_STORE:
        return ft_cpu_store_scratch(plan, op, limits);
    case FT_OP_ATTEND:
        return ft_cpu_attend_scratch(plan, op, limits);
    case FT_OP_CHOOSE:
        return ft_cpu_choose_op_scratch(plan, op, limits);
    case FT_OP_BEAM:
        return ft_cpu_beam_scratch(plan, op, limits);
    case FT_OP_CONV:
        return ft_cpu_conv_scratch(plan, op, limits);
    default:
        return ft_cpu_rows_scratch(plan, op, limits);
    }
}

/* Scratch bytes of the operation that needs the most. */
static size_t most_scratch(const ft_plan *plan, const ft_limits *limits)
{
    size_t most = 0;
    for (int i = 0; i < plan->nop; i++) {
        size_t bytes = scratch_of(plan, &plan->op[i], limits);
        most = bytes > most ? bytes : most;
    }
    return ft_round_up(most, 64);
}

static void release(ft_exec *exec)
{
    ft_shares_close(exec->shares);
    free(exec->arena);
    free(exec->scratch);
    free(exec);
}

static ft_status refuse_memory(const ft_limits *limits, size_t arena, size_t scratch, ft_error *err)
{
    char cache[64] = "";
    if (limits->pages > 0)
        snprintf(cache, sizeof cache, " and a cache of %zu", limits->pages * FT_PAGE);
    return ft_fail(
        err, FT_ENOMEM,
        "no memory for batches of %zu tokens%s: %zu bytes needed, and %zu of scratch, %zu free",
        limits->tokens, cache, arena, scratch, ft_memory_free());
}

/* Each operation of a shard runs on one thread. */
static ft_limits limits_of_share(const ft_limits *limits)
{
    ft_limits one = *limits;
    one.threads = 1;
    return one;
}

/* Scratch is sized for one operation on all threads, or for one operation per shard. */
static size_t set_scratch(ft_exec *exec)
{
    ft_limits one = limits_of_share(&exec->limits);
    exec->scratch_bytes = most_scratch(exec->plan, &exec->limits);
    if (exec->shares == NULL)
        return exec->scratch_bytes;
    exec->share_scratch = most_scratch(exec->plan, &one);
    size_t apart = exec->share_scratch * (size_t) exec->limits.threads;
    return exec->scratch_bytes > apart ? exec->scratch_bytes : apart;
}

static ft_status allocate(ft_exec *exec, ft_error *err)
{
    FT_TRY(ft_shares_open(&exec->shares, exec->plan, &exec->limits, err));
    size_t scratch = set_scratch(exec), arena = exec->plan->arena, bytes;
    if (ft_add(arena, scratch, &bytes) && bytes < ft_memory_free()) {
        exec->arena = ft_alloc(arena);
        exec->scratch = ft_alloc(scratch);
    }
    return exec->arena != NULL && exec->scratch != NULL
               ? FT_OK
               : refuse_memory(&exec->limits, arena, scratch, err);
}

static bool needs_blas(const ft_plan *plan)
{
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if ((op->kind == FT_OP_LINEAR && ft_cpu_linear_needs_blas(plan, op)) ||
            (op->kind == FT_OP_ATTENTION && ft_cpu_attention_needs_blas(plan, op)))
            return true;
    }
    return false;
}

static ft_status prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err)
{
    if (needs_blas(plan))
        FT_TRY(ft_blas_load(limits->threads, err));
    ft_exec *exec = ft_array(1, sizeof *exec);
    if (exec == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to run a plan");
    exec->plan = plan;
    exec->isa = device->isa;
    exec->limits = *limits;
    ft_status status = allocate(exec, err);
    if (status != FT_OK) {
        release(exec);
        return status;
    }
    *out = exec;
    return FT_OK;
}

static size_t bytes_of_rows(const ft_value *value, size_t rows)
{
    return rows * (size_t) value->cols * ft_dtype_size(value->dtype);
}

static float *row_scales(const ft_exec *exec, const ft_value *v)
{
    char *data = exec->arena + v->offset;
    return (float *) (void *) (data + ft_row_scales_offset(v, &exec->limits));
}

static ft_status write_value(ft_exec *exec, int value, const void *data, size_t rows, ft_error *err)
{
    (void) err;
    const ft_value *v = &exec->plan->value[value];
    memcpy(exec->arena + v->offset, data, bytes_of_rows(v, rows));
    return FT_OK;
}

static ft_status read_value(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                            ft_error *err)
{
    (void) err;
    const ft_value *v = &exec->plan->value[value];
    memcpy(data, exec->arena + v->offset, bytes_of_rows(v, rows));
    if (v->dynamic && scales != NULL)
        memcpy(scales, row_scales(exec, v), rows * sizeof *scales);
    return FT_OK;
}

/* The execution context of a kernel: the full batch on all threads, or one shard on one thread. */
typedef struct place {
    const ft_exec *exec;
    const ft_batch *batch;
    const ft_share *share; /* NULL: the full batch */
    ft_limits limits;
    char *scratch;
    size_t scratch_bytes;
} place;

static place whole_of(const ft_exec *exec, const ft_batch *batch)
{
    return (place){ .exec = exec,
                    .batch = batch,
                    .limits = exec->limits,
                    .scratch = exec->scratch,
                    .scratch_bytes = exec->scratch_bytes };
}

static place share_of(const ft_exec *exec, size_t index)
{
    const ft_share *share = ft_shares_get(exec->shares, index);
    return (place){ .exec = exec,
                    .batch = &share->batch,
                    .share = share,
                    .limits = limits_of_share(&exec->limits),
                    .scratch = exec->scratch + index * exec->share_scratch,
                    .scratch_bytes = exec->share_scratch };
}

/* Address of the value's first row; *scales receives the address of that row's scale. */
static char *begin_of(const place *p, int value, float **scales)
{
    const ft_exec *exec = p->exec;
    const ft_value *v = &exec->plan->value[value];
    size_t own = p->share == NULL ? SIZE_MAX : ft_shares_offset(exec->shares, value);
    size_t before = p->share == NULL || own != SIZE_MAX ? 0 : p->share->first[v->rows];
    char *data = own == SIZE_MAX ? exec->arena + v->offset : p->share->arena + own;
    *scales = v->dynamic
                  ? (float *) (void *) (data + ft_row_scales_offset(v, &exec->limits)) + before
                  : NULL;
    return data + bytes_of_rows(v, before);
}

static ft_view view_of(const place *p, int value)
{
    if (value < 0)
        return (ft_view){ 0 };
    const ft_value *v = &p->exec->plan->value[value];
    ft_view view = {
        .rows = v->state ? ft_rows_within(&p->limits, v->rows) : ft_batch_rows(p->batch, v->rows),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
    };
    view.data = begin_of(p, value, &view.scales);
    return view;
}

static void run_op(const place *p, const ft_op *op, ft_counts *const *counts)
{
    const ft_exec *exec = p->exec;
    ft_args args = {
        .isa = exec->isa,
        .rows = ft_rows_of(exec->isa),
        .op = op,
        .out = view_of(p, op->out),
        .codes = view_of(p, op->codes),
        .second = view_of(p, op->second),
        .batch = p->batch,
        .limits = &p->limits,
        .steady = exec->plan->steady,
        .scratch = p->scratch,
        .scratch_bytes = p->scratch_bytes,
        .threads = p->limits.threads,
    };
    for (int i = 0; i < FT_MAX_IN; i++)
        args.in[i] = view_of(p, op->in[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        args.state[i] = view_of(p, op->state[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args.weight[i] = op->weight[i] < 0 ? NULL : &exec->plan->weight[op->weight[i]];
    int observed = op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
    if (counts != NULL && observed >= 0)
        args.counts = counts[observed];
    kernels[op->kind](&args);
}

static void run_range(const place *p, int first, int count, ft_counts *const *counts)
{
    for (int i = first; i < first + count; i++)
        run_op(p, &p->exec->plan->op[i], counts);
}

typedef struct shared_range {
    const ft_exec *exec;
    int first, count;
} shared_range;

static void run_shares(const void *job, int thread, size_t first, size_t end)
{
    const shared_range *range = job;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        place p = share_of(range->exec, i);
        run_range(&p, range->first, range->count, NULL);
    }
}

/* Runs on all threads together, or shard by shard with one thread each. */
static void run_ops(ft_exec *exec, int first, int count, const ft_batch *batch,
                    ft_counts *const *counts)
{
    size_t shares = exec->shares == NULL ? 0 : ft_shares_cut(exec->shares, batch, exec->arena);
    place whole = whole_of(exec, batch);
    if (shares > 1)
        ft_team_share((int) shares, shares, run_shares, &(shared_range){ exec, first, count });
    else
        run_range(&whole, first, count, counts);
}

static ft_status run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err)
{
    (void) err;
    assert(counts == NULL || exec->limits.threads == 1);
    int first = ft_batch_first_op(exec->plan, batch);
    run_ops(exec, first, ft_batch_end_op(exec->plan, batch) - first, batch, counts);
    return FT_OK;
}

static ft_status chosen(ft_exec *exec, unsigned back, int32_t *token, float *logprob, size_t rows,
                        ft_error *err)
{
    const ft_plan *plan = exec->plan;
    int op = plan->nop - 1;
    assert(back == 0);
    while (op > 0 && plan->op[op].kind != FT_OP_CHOOSE)
        op--;
    FT_TRY(read_value(exec, plan->op[op].out, token, NULL, rows, err));
    return read_value(exec, plan->op[op].second, logprob, NULL, rows, err);
}

static ft_status run_one(ft_exec *exec, const ft_batch *batch, int op, ft_error *err)
{
    (void) err;
    run_ops(exec, op, 1, batch, NULL);
    return FT_OK;
}

/* "avx2, stream" or "avx2, panels": gemm_i8.c describes both kernels. */
static int explain(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size)
{
    const ft_plan *plan = exec->plan;
    const ft_op *o = &plan->op[op];
    bool is_product = o->kind == FT_OP_LINEAR && plan->weight[o->weight[0]].dtype == FT_I8;
    snprintf(text, size, "%s", "");
    if (!is_product)
        return 0;
    size_t rows = ft_batch_rows(batch, plan->value[o->in[0]].rows);
    snprintf(text, size, "%s, %s", ft_isa_name(exec->isa),
             ft_gemm_i8_walks(exec->isa, rows) ? "stream" : "panels");
    return 1;
}

/* Executions are synchronous and update the counters directly, so there is nothing to wait for. */
static ft_status wait_for_nothing(ft_exec *exec, ft_error *err)
{
    (void) exec, (void) err;
    return FT_OK;
}

static ft_status collect_nothing(ft_exec *exec, ft_counts *const *counts, ft_error *err)
{
    (void) exec, (void) counts, (void) err;
    return FT_OK;
}

const ft_backend ft_backend_cpu = {
    .name = "cpu",
    .describe = describe,
    .open = open_cpu,
    .close = close_cpu,
    .upload = upload,
    .prepare = prepare,
    .release = release,
    .write = write_value,
    .read = read_value,
    .run = run,
    .chosen = chosen,
    .run_op = run_one,
    .explain = explain,
    .wait = wait_for_nothing,
    .collect = collect_nothing,
};
