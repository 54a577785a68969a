/*
 * bench_product.c - single operations on random numbers: what a device can do at best, and what the
 * products of a plan take alone.
 *
 * An operation is a plan of one line, which goes the way that all plans go; so ceilings are
 * measured with the kernels that models run on, whatever the backend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/devices.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/plan.h"
#include "runtime/tools/bench.h"
#include "runtime/tools/noise.h"
#include "runtime/tools/synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- One operation ------------------------------------------------------------------------ */

enum { X, Y };

/* A plan of one operation, ready to run; it must not move. */
typedef struct single {
    ft_plan plan;
    ft_value value[2];
    ft_weight weight[2];
    ft_weight own[2]; /* the weights as they were made: a backend may move the others */
    ft_op op;
    ft_batch batch;
    int32_t start[2];
    const ft_backend *backend;
    ft_exec *exec;
} single;

static void single_init(single *s, const ft_backend *backend, ft_op_kind kind, size_t rows)
{
    *s = (single){ .op = ft_op_make(kind), .backend = backend };
    s->plan = (ft_plan){ .value = s->value,
                         .op = &s->op,
                         .weight = s->weight,
                         .nvalue = 2,
                         .nop = 1,
                         .noutput = 1,
                         .output = { { "y", Y } } };
    s->start[1] = (int32_t) rows;
    s->batch = (ft_batch){ rows, 1, rows, s->start };
    s->op.in[0] = X;
    s->op.out = Y;
}

static void single_fini(single *s)
{
    if (s->exec != NULL)
        s->backend->release(s->exec);
    for (int i = 0; i < s->plan.nweight; i++)
        ft_weight_clear(&s->own[i]);
}

/* A matrix of real numbers, or of codes with this scale. */
static ft_value matrix(const char *name, size_t cols, ft_dtype dtype, float scale)
{
    ft_value value = { .rows = FT_TOKENS, .cols = (int32_t) cols, .dtype = dtype };
    snprintf(value.name, sizeof value.name, "%s", name);
    value.scale = dtype == FT_I8 ? scale : 0.0f;
    value.keep = true;
    return value;
}

static ft_status write_input(single *s, int threads, ft_error *err)
{
    ft_weight noise = { .name = "x",
                        .rows = s->batch.tokens,
                        .cols = (size_t) s->value[X].cols,
                        .dtype = s->value[X].dtype };
    FT_TRY(ft_weight_fill(&noise, &(ft_distribution){ 1, 0.0f, 1.0f }, threads, err));
    ft_status status = s->backend->write(s->exec, X, noise.data, noise.rows, err);
    ft_weight_clear(&noise);
    return status;
}

static ft_status single_prepare(single *s, ft_device *device, int threads, ft_error *err)
{
    ft_limits limits = { s->batch.tokens, 1, threads };
    FT_TRY(ft_op_check(&s->plan, &s->op, "benchmark", err));
    FT_TRY(ft_plan_layout(&s->plan, limits.tokens, limits.sequences, err));
    FT_TRY(s->backend->prepare(&s->exec, device, &s->plan, &limits, err));
    return write_input(s, threads, err);
}

/* Of single runs, or of blocks of runs where a device queues them. */
static ft_status single_time(ft_times *out, const single *s, ft_error *err)
{
    enum { MOST = 10 };
    ft_target target = { s->backend, s->exec, &s->batch, -1 };
    int block = ft_target_queues(&target) ? 10 : 1;
    double sample[MOST], sum = 0.0;
    size_t count = 0;
    FT_TRY(ft_target_time(&target, block, &sample[0], err)); /* warms up */
    while (count < MOST && (count == 0 || sum < 0.2)) {
        FT_TRY(ft_target_time(&target, block, &sample[count], err));
        sum += block * sample[count++];
    }
    *out = ft_times_of(sample, count);
    return FT_OK;
}

/* ---- Products ----------------------------------------------------------------------------- */

ft_product ft_product_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch)
{
    const ft_value *x = &plan->value[op->in[0]];
    const ft_weight *w = &plan->weight[op->weight[0]];
    return (ft_product){
        .m = x->rows == FT_TOKENS ? batch->tokens : batch->sequences,
        .n = w->rows,
        .k = w->cols,
        .x = x->dtype,
        .w = w->dtype,
        .y = plan->value[op->codes >= 0 ? op->codes : op->out].dtype,
        .activation = op->attr.activation,
    };
}

static ft_status make_weights(single *s, const ft_product *p, int threads, ft_error *err)
{
    s->own[0] = (ft_weight){ .name = "w",
                             .rows = p->n,
                             .cols = p->k,
                             .dtype = p->w,
                             .layout = p->w == FT_I8 ? FT_COL4_4R2_8C : FT_ROW };
    s->own[1] = (ft_weight){ .name = "b", .rows = 1, .cols = p->n, .dtype = FT_F32 };
    for (int i = 0; i < 2; i++, s->plan.nweight++) {
        ft_distribution how = { 2 + (uint64_t) i, 0.0f, 0.02f };
        FT_TRY(ft_weight_fill(&s->own[i], &how, threads, err));
        s->weight[i] = s->own[i];
        s->op.weight[i] = (int16_t) i;
    }
    return FT_OK;
}

static ft_status prepare_product(single *s, const ft_product *p, ft_device *device, int threads,
                                 ft_error *err)
{
    /* Real values of x have deviation 1, its codes one of 37; so have those of y. */
    float deviation = 0.02f * sqrtf((float) p->k);
    s->value[X] = matrix("x", p->k, p->x, 1.0f / 37.0f);
    s->value[Y] = matrix("y", p->n, p->y, deviation / 37.0f);
    s->op.attr.activation = p->activation;
    if (p->y == FT_I8) {
        s->op.codes = Y;
        s->op.out = -1;
    }
    FT_TRY(make_weights(s, p, threads, err));
    FT_TRY(s->backend->upload(device, s->weight, s->plan.nweight, err));
    return single_prepare(s, device, threads, err);
}

ft_status ft_product_time(ft_times *out, const ft_product *product, const ft_backend *backend,
                          ft_device *device, int threads, ft_error *err)
{
    single s;
    single_init(&s, backend, FT_OP_LINEAR, product->m);
    ft_status status = prepare_product(&s, product, device, threads, err);
    if (status == FT_OK)
        status = single_time(out, &s, err);
    single_fini(&s);
    return status;
}

/* ---- Ceilings ----------------------------------------------------------------------------- */

static ft_status copy_rate(const ft_backend *backend, ft_device *device, int threads, double *rate,
                           ft_error *err)
{
    enum { ROWS = 65536, COLS = 1024 }; /* 256 MiB: more than any cache */
    ft_times times = { 0 };
    single s;
    single_init(&s, backend, FT_OP_ACTIVATE, ROWS);
    s.value[X] = matrix("x", COLS, FT_F32, 0.0f);
    s.value[Y] = matrix("y", COLS, FT_F32, 0.0f);
    s.op.attr.activation = FT_ACT_RELU;
    ft_status status = single_prepare(&s, device, threads, err);
    if (status == FT_OK)
        status = single_time(&times, &s, err);
    single_fini(&s);
    *rate = 2.0 * ROWS * COLS * sizeof(float) / times.least;
    return status;
}

/* The best rate of square products like `p`; larger ones as long as they are quick. */
static ft_status product_rate(ft_product p, const ft_backend *backend, ft_device *device,
                              int threads, double *rate, ft_error *err)
{
    ft_times times = { 0 };
    p.activation = FT_ACT_NONE;
    *rate = 0.0;
    for (size_t size = 512; size <= 8192 && times.least < 0.02; size *= 2) {
        p.m = p.n = p.k = size;
        FT_TRY(ft_product_time(&times, &p, backend, device, threads, err));
        *rate = fmax(*rate, 2.0 * pow((double) size, 3.0) / times.least);
    }
    return FT_OK;
}

/* The kinds of products of the plan: those of codes, and those of real numbers. */
static ft_status measure(ft_ceilings *out, const ft_plan *plan, const ft_backend *backend,
                         ft_device *device, int threads, ft_error *err)
{
    int32_t start[2] = { 0, 1 };
    ft_batch batch = { 1, 1, 1, start };
    for (int i = 0; i < plan->nop; i++) {
        if (plan->op[i].kind != FT_OP_LINEAR)
            continue;
        ft_product p = ft_product_of(plan, &plan->op[i], &batch);
        double *rate = p.x == FT_I8 ? &out->int8 : &out->real;
        if (*rate <= 0.0)
            FT_TRY(product_rate(p, backend, device, threads, rate, err));
    }
    return copy_rate(backend, device, threads, &out->copy, err);
}

ft_status ft_ceilings_measure(ft_ceilings *out, const ft_plan *plan, const char *device,
                              int threads, ft_error *err)
{
    const ft_backend *backend;
    ft_device *open;
    *out = (ft_ceilings){ 0 };
    FT_TRY(ft_device_open(&backend, &open, device, err));
    ft_status status = measure(out, plan, backend, open, threads, err);
    backend->close(open);
    return status;
}
