/*
 * backend.c - the CPU backend: memory, and a loop over the plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_i8.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <assert.h>
#include <cblas.h>
#include <omp.h>
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
    void *scratch;
    size_t scratch_bytes;
};

static void (*const kernels[])(const ft_args *) = {
#define X(NAME, name) [FT_OP_##NAME] = ft_cpu_##name,
#include "kernels/ops.def"
#undef X
};

/*
 * One call of the float library is one thread's work here.  Its OpenMP build sees that it is called
 * from a parallel region; its pthread build would start threads of its own for each of ours.
 */
static void keep_float_library_to_one_thread(void)
{
    if (openblas_get_parallel() == OPENBLAS_THREAD)
        openblas_set_num_threads(1);
}

static bool describe(int index, ft_device_info *out)
{
    ft_isa isa;
    ft_error err;
    snprintf(out->name, sizeof out->name, "cpu");
    out->usable = ft_cpu_isa(&isa, &err) == FT_OK;
    if (out->usable)
        snprintf(out->detail, sizeof out->detail, "%s; float by OpenBLAS for %s", ft_isa_name(isa),
                 openblas_get_corename());
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
    keep_float_library_to_one_thread();
    return FT_OK;
}

static void close_cpu(ft_device *device)
{
    free(device);
}

/* Weights are used where they lie. */
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
    case FT_OP_STORE:
        return ft_cpu_store_scratch(plan, op, limits);
    case FT_OP_ATTEND:
        return ft_cpu_attend_scratch(plan, op, limits);
    case FT_OP_CHOOSE:
        return ft_cpu_choose_op_scratch(plan, op, limits);
    case FT_OP_BEAM:
        return ft_cpu_beam_scratch(plan, op, limits);
    default:
        return ft_cpu_rows_scratch(plan, op, limits);
    }
}

static void release(ft_exec *exec)
{
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
        "no memory for runs of %zu tokens%s: %zu bytes asked, and %zu of scratch, %zu free",
        limits->tokens, cache, arena, scratch, ft_memory_free());
}

static ft_status prepare(ft_exec **out, ft_device *device, const ft_plan *plan,
                         const ft_limits *limits, ft_error *err)
{
    size_t most = 0;
    for (int i = 0; i < plan->nop; i++) {
        size_t bytes = scratch_of(plan, &plan->op[i], limits);
        most = bytes > most ? bytes : most;
    }
    ft_exec *exec = ft_array(1, sizeof *exec);
    if (exec == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to run a plan");
    exec->plan = plan;
    exec->isa = device->isa;
    exec->limits = *limits;
    exec->scratch_bytes = most;
    size_t bytes, free = ft_memory_free();
    if (ft_add(plan->arena, most, &bytes) && bytes < free) {
        exec->arena = ft_alloc(plan->arena);
        exec->scratch = ft_alloc(most);
    }
    if (exec->arena == NULL || exec->scratch == NULL) {
        release(exec);
        return refuse_memory(limits, plan->arena, most, err);
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

static ft_view view_of(const ft_exec *exec, int value, const ft_batch *batch)
{
    if (value < 0)
        return (ft_view){ 0 };
    const ft_value *v = &exec->plan->value[value];
    return (ft_view){
        .data = exec->arena + v->offset,
        .rows = v->state ? ft_rows_within(&exec->limits, v->rows) : ft_batch_rows(batch, v->rows),
        .cols = (size_t) v->cols,
        .dtype = v->dtype,
        .scale = v->scale,
        .scales = v->dynamic ? row_scales(exec, v) : NULL,
    };
}

static void run_op(const ft_exec *exec, const ft_op *op, const ft_batch *batch,
                   ft_counts *const *counts)
{
    ft_args args = {
        .isa = exec->isa,
        .rows = ft_rows_of(exec->isa),
        .op = op,
        .out = view_of(exec, op->out, batch),
        .codes = view_of(exec, op->codes, batch),
        .second = view_of(exec, op->second, batch),
        .batch = batch,
        .limits = &exec->limits,
        .steady = exec->plan->steady,
        .scratch = exec->scratch,
        .scratch_bytes = exec->scratch_bytes,
        .threads = exec->limits.threads,
    };
    for (int i = 0; i < FT_MAX_IN; i++)
        args.in[i] = view_of(exec, op->in[i], batch);
    for (int i = 0; i < FT_MAX_STATES; i++)
        args.state[i] = view_of(exec, op->state[i], batch);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        args.weight[i] = op->weight[i] < 0 ? NULL : &exec->plan->weight[op->weight[i]];
    int observed = op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
    if (counts != NULL && observed >= 0)
        args.counts = counts[observed];
    kernels[op->kind](&args);
}

/* The float library asks OpenMP how many threads it may use: a call of it is one thread's work. */
static void run_range(const ft_exec *exec, int first, int count, const ft_batch *batch,
                      ft_counts *const *counts)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(1);
    for (int i = first; i < first + count; i++)
        run_op(exec, &exec->plan->op[i], batch, counts);
    omp_set_num_threads(before);
}

static ft_status run(ft_exec *exec, const ft_batch *batch, ft_counts *const *counts, ft_error *err)
{
    (void) err;
    assert(counts == NULL || exec->limits.threads == 1);
    int first = ft_batch_first_op(exec->plan, batch);
    run_range(exec, first, ft_batch_end_op(exec->plan, batch) - first, batch, counts);
    return FT_OK;
}

static ft_status run_one(ft_exec *exec, const ft_batch *batch, int op, ft_error *err)
{
    (void) err;
    run_range(exec, op, 1, batch, NULL);
    return FT_OK;
}

/* "avx2, walk" or "avx2, panels": gemm_i8.c says what these are. */
static int explain(ft_exec *exec, const ft_batch *batch, int op, char *text, size_t size)
{
    const ft_plan *plan = exec->plan;
    const ft_op *o = &plan->op[op];
    bool is_product = o->kind == FT_OP_LINEAR && plan->weight[o->weight[0]].dtype == FT_I8;
    snprintf(text, size, "%s", "");
    if (!is_product)
        return 0;
    size_t rows = view_of(exec, o->in[0], batch).rows;
    snprintf(text, size, "%s, %s", ft_isa_name(exec->isa),
             ft_gemm_i8_walks(exec->isa, rows) ? "walk" : "panels");
    return 1;
}

/* Runs are complete when they return, and count where they are told to. */
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
    .run_op = run_one,
    .explain = explain,
    .wait = wait_for_nothing,
    .collect = collect_nothing,
};
