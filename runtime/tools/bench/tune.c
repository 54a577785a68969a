/*
 * tune.c - find the fastest kernels for the GEMMs of a model on a device, and write them to the
 * tuning file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tuning/tuning.h"
#include "runtime/tools/bench/bench.h"

#include "kernels/fused_ops.h"

#include <stdlib.h>
#include <string.h>

/* A decode step has few rows, a prefill pass thousands. */
static const size_t rows[] = { 1,  2,   4,   8,   16,  24,   32,   48,  64,
                               96, 128, 256, 512, 768, 1024, 2048, 4096 };

typedef struct tuner {
    ft_bench *bench;
    ft_gemm_problem *seen; /* [num_seen] */
    size_t num_seen, capacity;
    ft_tuning found;
} tuner;

/* ---- Problems ----------------------------------------------------------------------------- */

static bool is_float(const ft_gemm_problem *p)
{
    return p->w == FT_F16 || p->w == FT_BF16;
}

static ft_gemm_problem problem_of(const ft_plan *plan, const ft_op *op)
{
    int32_t start[2] = { 0, 1 };
    const ft_batch batch = { .tokens = 1, .sequences = 1, .longest = 1, .start = start };
    ft_gemm_problem p = ft_bench_gemm_of(plan, op, &batch);
    p.m = rows[FT_COUNT(rows) - 1];
    p.y = plan->value[op->quantized >= 0 ? op->quantized : op->out].dtype;
    p.batch_invariant = is_float(&p) && plan->batch_invariant;
    return p;
}

/* Float linears with one row per sequence have one kernel, unless they are batch-invariant. */
static bool is_tunable(const ft_plan *plan, const ft_op *op)
{
    if (op->kind != FT_OP_LINEAR)
        return false;
    ft_gemm_problem p = problem_of(plan, op);
    return !is_float(&p) || p.batch_invariant || plan->value[op->in[0]].rows == FT_TOKENS;
}

/* Whether linears of a fusion group may be one GEMM; float ones need equal shapes. */
static bool may_join(const ft_plan *plan, const ft_gemm_problem *a, int op)
{
    ft_gemm_problem b = problem_of(plan, &plan->op[op]);
    if (!is_float(a))
        b.n = a->n;
    return ft_gemm_problem_same_shape(a, &b);
}

/* The linears of a fusion group are one GEMM, where the device has kernels for that. */
static bool merge(const ft_plan *plan, int op, ft_gemm_problem *out)
{
    const ft_gemm_problem one = *out;
    for (int g = 0; g < plan->ngroup; g++) {
        int first = ft_group_first_linear(&plan->group[g]);
        int end = first + ft_group_linears(&plan->group[g]);
        if (op < first || op >= end || (one.w == FT_I8 && !plan->group[g].contiguous))
            continue;
        out->n = 0;
        out->linears = 0;
        for (int i = first; i < end && may_join(plan, &one, i); i++, out->linears++)
            out->n += plan->weight[plan->op[i].weight[0]].rows;
        if (out->linears < end - first)
            *out = one;
    }
    return out->linears > 1;
}

/* Whether a problem comes up for the first time. */
static ft_status remember(tuner *t, const ft_gemm_problem *p, bool *is_new, ft_error *err)
{
    *is_new = true;
    for (size_t i = 0; i < t->num_seen; i++)
        *is_new = *is_new && !ft_gemm_problem_same_shape(&t->seen[i], p);
    if (!*is_new)
        return FT_OK;
    if (t->num_seen == t->capacity) {
        ft_gemm_problem *grown = ft_array_grow(t->seen, &t->capacity, 16, sizeof *grown);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "no memory for %zu GEMMs", t->num_seen + 1);
        t->seen = grown;
    }
    t->seen[t->num_seen++] = *p;
    return FT_OK;
}

/* ---- Results ------------------------------------------------------------------------------ */

static void add_row(const tuner *t, const ft_gemm_problem *p, size_t m, const ft_gemm_tuning *r)
{
    ft_cell cells[] = {
        { .name = "model", .text = t->bench->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = t->bench->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = t->bench->device, .column = FT_COLUMN_CSV },
        { .name = "m", .width = 6, .number = (double) m },
        { .name = "n", .width = 6, .number = (double) p->n },
        { .name = "k", .width = 6, .number = (double) p->k },
        { .name = "x_dtype", .head = "x", .width = 4, .text = ft_dtype_name(p->x) },
        { .name = "w_dtype", .head = "w", .width = 4, .text = ft_dtype_name(p->w) },
        { .name = "activation", .text = ft_activation_name(p->activation) },
        { .name = "out_dtype", .head = "out", .width = 4, .text = ft_dtype_name(p->y) },
        { .name = "ms", .number = 1e3 * r->used.seconds, .digits = 4 },
        { .name = "tuned_ms", .number = 1e3 * r->fastest.seconds, .digits = 4 },
        { .name = "relative_time",
          .head = "ratio",
          .width = 6,
          .number = r->fastest.seconds / r->used.seconds,
          .digits = 2 },
        { .name = "used", .text = r->used.name },
        { .name = "fastest", .text = r->fastest.name },
    };
    ft_table_row(&t->bench->gemms, cells, FT_COUNT(cells));
}

/* All numbers of rows are kept, so that those in between take the kernel of the next larger one. */
static ft_status keep(tuner *t, const ft_gemm_problem *p, const ft_gemm_tuning *r, ft_error *err)
{
    size_t count = t->found.count + FT_COUNT(rows);
    ft_tuned_gemm *grown = realloc(t->found.gemm, count * sizeof *grown);
    if (grown == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu tuned GEMMs", count);
    t->found.gemm = grown;
    for (size_t i = 0; i < FT_COUNT(rows); i++) {
        if (r[i].fastest.name[0] == '\0')
            continue;
        ft_tuned_gemm *one = &grown[t->found.count++];
        *one = (ft_tuned_gemm){ .problem = *p };
        one->problem.m = rows[i];
        memcpy(one->kernel, r[i].fastest.name, sizeof one->kernel);
        add_row(t, p, rows[i], &r[i]);
    }
    return FT_OK;
}

/* *supported: the device has a kernel. */
static ft_status tune_problem(tuner *t, const ft_gemm_problem *p, bool *supported, ft_error *err)
{
    const ft_model *model = t->bench->model;
    ft_gemm_tuning result[FT_COUNT(rows)];
    bool is_new;
    *supported = true;
    FT_TRY(remember(t, p, &is_new, err));
    if (!is_new)
        return FT_OK;
    FT_TRY(model->backend->tune_gemm(model->device, p, rows, FT_COUNT(rows), result, err));
    *supported = result[0].fastest.name[0] != '\0';
    return keep(t, p, result, err);
}

static ft_status tune_op(tuner *t, int op, ft_error *err)
{
    const ft_plan *plan = &t->bench->model->plan;
    bool supported = false;
    ft_gemm_problem one = problem_of(plan, &plan->op[op]), merged = one;
    if (merge(plan, op, &merged))
        FT_TRY(tune_problem(t, &merged, &supported, err));
    return supported ? FT_OK : tune_problem(t, &one, &supported, err);
}

static ft_status tune_all(tuner *t, ft_error *err)
{
    const ft_plan *plan = &t->bench->model->plan;
    for (int i = 0; i < plan->nop; i++)
        if (is_tunable(plan, &plan->op[i]))
            FT_TRY(tune_op(t, i, err));
    if (t->found.count == 0)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "--tune: %s has no GEMM for which %s has several kernels", t->bench->name,
                       t->bench->device);
    return FT_OK;
}

static ft_status write_file(const tuner *t, const char *given, ft_error *err)
{
    const ft_model *model = t->bench->model;
    ft_device_identity identity;
    bool is_default;
    char *path;
    FT_TRY(model->backend->identify(model->device, &identity, err));
    FT_TRY(ft_tuning_path(&path, &is_default, given, err));
    ft_status status = path != NULL ? ft_tuning_write(&t->found, path, &identity, err)
                                    : ft_fail(err, FT_EARG,
                                              "--tune: there is no home folder for the tuning "
                                              "file; give --tuning FILE");
    if (status == FT_OK)
        fprintf(stderr, "ft-bench: %zu GEMMs of %s in %s\n", t->found.count, identity.name, path);
    free(path);
    return status;
}

ft_status ft_bench_tune(ft_bench *bench, const char *path, ft_error *err)
{
    tuner t = { .bench = bench };
    if (bench->model->backend->tune_gemm == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "--tune: device %s has one kernel for each operation",
                       bench->device);
    ft_status status = tune_all(&t, err);
    if (status == FT_OK)
        status = write_file(&t, path, err);
    ft_tuning_fini(&t.found);
    free(t.seen);
    return status;
}
