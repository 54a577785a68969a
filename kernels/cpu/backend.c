/*
 * backend.c - the CPU backend: device memory, and the loop that executes a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

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
    ft_batch_shards *shards; /* NULL: all threads work on each operation together */
    char *scratch;
    size_t scratch_bytes; /* one scratch buffer for all threads of an operation, ... */
    size_t shard_scratch; /* ... or one of this size per shard */
};

static void (*const kernels[])(const ft_args *) = {
#define X(NAME, name, ...) [FT_OP_##NAME] = ft_cpu_##name,
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
        snprintf(out->detail, sizeof out->detail, "%s", ft_isa_name(isa));
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
    *out = ft_calloc(1, sizeof **out);
    if (*out == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a device");
    (*out)->isa = isa;
    return FT_OK;
}

static void close_cpu(ft_device *device)
{
    free(device);
}

/* Weights are used where they lie. */
static ft_status upload(ft_device *device, const ft_plan *plan, ft_weight *weights, int count,
                        ft_error *err)
{
    (void) device, (void) plan, (void) weights, (void) count, (void) err;
    return FT_OK;
}

static ft_cpu_workspace_fn *const workspace_fns[] = {
#define X(NAME, name, READS, WRITES, STORAGE, WORK, RUNS, CPU, CUDA)                               \
    [FT_OP_##NAME] = FT_CPU_WORKSPACE_##CPU(name),
#include "kernels/ops.def"
#undef X
};

/* What the operations of a plan need, one after another. */
static ft_workspace workspace_of(const ft_plan *plan, const ft_limits *limits)
{
    ft_workspace shared = { 0 };
    for (const ft_op *op = plan->op; op < plan->op + plan->nop; op++)
        ft_workspace_extend(&shared, workspace_fns[op->kind](plan, op, limits));
    shared.scratch = ft_round_up(shared.scratch, 64);
    return shared;
}

static void release(ft_exec *exec)
{
    ft_batch_shards_close(exec->shards);
    free(exec->arena);
    free(exec->scratch);
    free(exec);
}

static ft_status fail_no_memory(const ft_limits *limits, size_t arena, size_t scratch,
                                ft_error *err)
{
    char cache[64] = "";
    if (limits->pages > 0)
        snprintf(cache, sizeof cache, " and a cache of %zu", limits->pages * FT_PAGE_TOKENS);
    return ft_fail(
        err, FT_ENOMEM,
        "no memory for batches of %zu tokens%s: %zu bytes needed, and %zu of scratch, %zu free",
        limits->tokens, cache, arena, scratch, ft_memory_available());
}

/* Each operation of a shard runs on one thread. */
static ft_limits single_thread_limits(const ft_limits *limits)
{
    ft_limits single = *limits;
    single.threads = 1;
    return single;
}

/* Scratch is sized for one operation on all threads, or for one operation per shard. */
static size_t size_scratch(ft_exec *exec)
{
    ft_limits single = single_thread_limits(&exec->limits);
    exec->scratch_bytes = workspace_of(exec->plan, &exec->limits).scratch;
    if (exec->shards == NULL)
        return exec->scratch_bytes;
    exec->shard_scratch = workspace_of(exec->plan, &single).scratch;
    size_t all_shards = exec->shard_scratch * (size_t) exec->limits.threads;
    return exec->scratch_bytes > all_shards ? exec->scratch_bytes : all_shards;
}

static ft_status allocate(ft_exec *exec, ft_error *err)
{
    FT_TRY(ft_batch_shards_open(&exec->shards, exec->plan, &exec->limits, err));
    size_t scratch = size_scratch(exec), arena = exec->plan->arena, bytes;
    if (ft_checked_add(arena, scratch, &bytes) && bytes < ft_memory_available()) {
        exec->arena = ft_calloc_aligned(arena);
        exec->scratch = ft_calloc_aligned(scratch);
    }
    return exec->arena != NULL && exec->scratch != NULL
               ? FT_OK
               : fail_no_memory(&exec->limits, arena, scratch, err);
}

static ft_status prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err)
{
    ft_exec *exec = ft_calloc(1, sizeof *exec);
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

static size_t row_bytes(const ft_value *value, size_t rows)
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
    memcpy(exec->arena + v->offset, data, row_bytes(v, rows));
    return FT_OK;
}

static ft_status read_value(const ft_exec *exec, int value, void *data, float *scales, size_t rows,
                            ft_error *err)
{
    (void) err;
    const ft_value *v = &exec->plan->value[value];
    memcpy(data, exec->arena + v->offset, row_bytes(v, rows));
    if (v->dynamic && scales != NULL)
        memcpy(scales, row_scales(exec, v), rows * sizeof *scales);
    return FT_OK;
}

/* ---- Saved values -------------------------------------------------------------------------- */

static ft_status alloc_saved(ft_exec *exec, void **out, size_t bytes, ft_error *err)
{
    (void) exec;
    *out = ft_calloc_aligned(bytes);
    return *out != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu bytes", bytes);
}

static void free_saved(void *saved)
{
    free(saved);
}

static ft_status save(const ft_exec *exec, int value, void *to, size_t rows, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    float *scales = (void *) ((char *) to + ft_round_up(row_bytes(v, rows), 64));
    return read_value(exec, value, to, scales, rows, err);
}

static ft_status restore(ft_exec *exec, int value, const void *from, size_t rows, ft_error *err)
{
    const ft_value *v = &exec->plan->value[value];
    if (v->dynamic)
        memcpy(row_scales(exec, v), (const char *) from + ft_round_up(row_bytes(v, rows), 64),
               rows * sizeof(float));
    return write_value(exec, value, from, rows, err);
}

/* ---- Running ------------------------------------------------------------------------------- */

/* The execution context of a kernel: the full batch on all threads, or one shard on one thread. */
typedef struct exec_ctx {
    const ft_exec *exec;
    const ft_batch *batch;
    const ft_batch_shard *shard; /* NULL: the full batch */
    ft_limits limits;
    char *scratch;
    size_t scratch_bytes;
} exec_ctx;

static exec_ctx full_batch_ctx(const ft_exec *exec, const ft_batch *batch)
{
    return (exec_ctx){ .exec = exec,
                       .batch = batch,
                       .limits = exec->limits,
                       .scratch = exec->scratch,
                       .scratch_bytes = exec->scratch_bytes };
}

static exec_ctx shard_ctx(const ft_exec *exec, size_t index)
{
    const ft_batch_shard *shard = ft_batch_shards_get(exec->shards, index);
    return (exec_ctx){ .exec = exec,
                       .batch = &shard->batch,
                       .shard = shard,
                       .limits = single_thread_limits(&exec->limits),
                       .scratch = exec->scratch + index * exec->shard_scratch,
                       .scratch_bytes = exec->shard_scratch };
}

/* Address of the value's first row; *scales receives the address of that row's scale. */
static char *first_row(const exec_ctx *p, int value, float **scales)
{
    const ft_exec *exec = p->exec;
    const ft_value *v = &exec->plan->value[value];
    size_t shard_offset = p->shard == NULL ? SIZE_MAX : ft_batch_shards_offset(exec->shards, value);
    size_t row_offset = p->shard == NULL || shard_offset != SIZE_MAX ? 0 : p->shard->first[v->rows];
    char *data =
        shard_offset == SIZE_MAX ? exec->arena + v->offset : p->shard->arena + shard_offset;
    *scales = v->dynamic
                  ? (float *) (void *) (data + ft_row_scales_offset(v, &exec->limits)) + row_offset
                  : NULL;
    return data + row_bytes(v, row_offset);
}

static ft_view value_view(const exec_ctx *p, int value)
{
    if (value < 0)
        return (ft_view){ 0 };
    const ft_value *v = &p->exec->plan->value[value];
    ft_view view = {
        .rows = v->state ? ft_limits_rows(&p->limits, v->rows) : ft_batch_rows(p->batch, v->rows),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
    };
    if (v->input == FT_BATCH_NONE)
        view.data = first_row(p, value, &view.scales);
    else /* operations only read it; a union casts the qualifier away */
        view.data = (union {
                        const int32_t *in;
                        void *out;
                    }){ p->batch->input[v->input] }
                        .out;
    return view;
}

static void run_op(const exec_ctx *p, const ft_op *op, ft_counts *const *counts)
{
    const ft_exec *exec = p->exec;
    ft_args args = {
        .isa = exec->isa,
        .rows = ft_row_kernels_for(exec->isa),
        .op = op,
        .out = value_view(p, op->out),
        .quantized = value_view(p, op->quantized),
        .second = value_view(p, op->second),
        .batch = p->batch,
        .limits = &p->limits,
        .scratch = p->scratch,
        .scratch_bytes = p->scratch_bytes,
        .threads = p->limits.threads,
    };
    for (int i = 0; i < FT_MAX_IN; i++)
        args.in[i] = value_view(p, op->in[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        args.state[i] = value_view(p, op->state[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args.weight[i] = op->weight[i] < 0 ? NULL : &exec->plan->weight[op->weight[i]];
    int observed = ft_op_observed(op);
    if (counts != NULL && observed >= 0)
        args.counts = counts[observed];
    kernels[op->kind](&args);
}

static void run_ops_serial(const exec_ctx *p, int first, int count, ft_counts *const *counts)
{
    for (int i = first; i < first + count; i++)
        run_op(p, &p->exec->plan->op[i], counts);
}

typedef struct op_range {
    const ft_exec *exec;
    int first, count;
} op_range;

static void run_shards(const void *job, int thread, size_t first, size_t end)
{
    const op_range *range = job;
    (void) thread;
    for (size_t i = first; i < end; i++) {
        exec_ctx p = shard_ctx(range->exec, i);
        run_ops_serial(&p, range->first, range->count, NULL);
    }
}

/* Runs on all threads together, or shard by shard with one thread each. */
static void run_ops(ft_exec *exec, int first, int count, const ft_batch *batch,
                    ft_counts *const *counts)
{
    size_t shards = exec->shards == NULL ? 0 : ft_batch_shards_split(exec->shards, batch);
    exec_ctx full = full_batch_ctx(exec, batch);
    if (shards > 1)
        ft_parallel_for((int) shards, shards, run_shards, &(op_range){ exec, first, count });
    else
        run_ops_serial(&full, first, count, counts);
}

static ft_status run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err)
{
    (void) err;
    assert(counts == NULL || exec->limits.threads == 1);
    int first = ft_batch_first_op(exec->plan, batch);
    run_ops(exec, first, ft_batch_end_op(exec->plan, batch) - first, batch, counts);
    return FT_OK;
}

static ft_status run_range(ft_exec *exec, const ft_batch *batch, int first, int end, ft_error *err)
{
    (void) err;
    exec_ctx full = full_batch_ctx(exec, batch); /* shards have no values that can be saved */
    run_ops_serial(&full, first, end - first, NULL);
    return FT_OK;
}

static ft_status chosen(ft_exec *exec, unsigned back, int32_t *token, float *logprob, size_t rows,
                        ft_error *err)
{
    const ft_plan *plan = exec->plan;
    int op = plan->nop - 1;
    assert(back == 0);
    while (op > 0 && ft_op_info_of(plan->op[op].kind)->runs != FT_RUNS_SAMPLING)
        op--;
    FT_TRY(read_value(exec, plan->op[op].out, token, NULL, rows, err));
    return read_value(exec, plan->op[op].second, logprob, NULL, rows, err);
}

static ft_status run_single_op(ft_exec *exec, const ft_batch *batch, int op, ft_error *err)
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
    bool is_i8_gemm = ft_op_is_gemm(o->kind) && plan->weight[o->weight[0]].dtype == FT_I8;
    snprintf(text, size, "%s", "");
    if (!is_i8_gemm)
        return 0;
    size_t rows = ft_batch_rows(batch, plan->value[o->in[0]].rows);
    snprintf(text, size, "%s, %s", ft_isa_name(exec->isa),
             ft_gemm_i8_streams(exec->isa, rows) ? "stream" : "panels");
    return 1;
}

/* Executions are synchronous and update the counters directly, so there is nothing to wait for. */
static ft_status wait_noop(ft_exec *exec, ft_error *err)
{
    (void) exec, (void) err;
    return FT_OK;
}

static ft_status collect_noop(ft_exec *exec, ft_counts *const *counts, ft_error *err)
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
    .run_range = run_range,
    .alloc_saved = alloc_saved,
    .free_saved = free_saved,
    .save = save,
    .restore = restore,
    .chosen = chosen,
    .run_op = run_single_op,
    .describe_gemm = explain,
    .wait = wait_noop,
    .collect = collect_noop,
};
