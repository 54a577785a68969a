/*
 * gemm.c - benchmark the GEMM shapes of a plan: all kernels of the device and the vendor library;
 * on a device with one kernel, int8 or group-wise against float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/bench.h"

#include <math.h>

static bool same_product(const ft_product *a, const ft_product *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->x == b->x && a->w == b->w &&
           a->y == b->y && a->group == b->group && a->by_codes == b->by_codes &&
           a->activation == b->activation;
}

/*
 * The next GEMM of the pass, from operation *at on; *at moves past it.  `joins`: the device merges
 * linears of the same input and shape, such as Q, K and V, into one GEMM.
 */
static bool next_product(const ft_session *session, bool joins, int *at, ft_product *out)
{
    const ft_plan *plan = &session->plan;
    while (*at < plan->nop && plan->op[*at].kind != FT_OP_LINEAR)
        ++*at;
    if (*at == plan->nop)
        return false;
    const ft_op *op = &plan->op[(*at)++];
    ft_product one = ft_product_of(plan, op, &session->batch);
    *out = one;
    for (; joins && *at < plan->nop && plan->op[*at].kind == FT_OP_LINEAR; ++*at) {
        ft_product other = ft_product_of(plan, &plan->op[*at], &session->batch);
        if (plan->op[*at].in[0] != op->in[0] || !same_product(&one, &other))
            break;
        out->n += one.n;
    }
    return true;
}

/* Number of GEMMs equal to `p` before operation `end`. */
static int count_products(const ft_session *session, bool joins, int end, const ft_product *p)
{
    ft_product other;
    int count = 0, at = ft_batch_first_op(&session->plan, &session->batch);
    while (at < end && next_product(session, joins, &at, &other))
        count += at <= end && same_product(p, &other);
    return count;
}

/* ---- Candidates --------------------------------------------------------------------------- */

static ft_status time_alone(const ft_bench *bench, const ft_product *p, ft_contender *out,
                            ft_error *err)
{
    ft_times times;
    FT_TRY(ft_product_time(&times, p, bench->model->backend, bench->model->device, bench->threads,
                           err));
    out->seconds = times.median;
    char blocks[32] = "";
    if (ft_blocks_bits(p->w) != 0)
        snprintf(blocks, sizeof blocks, "/%d%s", (int) p->group, p->by_codes ? " int8" : "");
    snprintf(out->name, sizeof out->name, "%s.%s%s->%s", ft_dtype_name(p->x), ft_dtype_name(p->w),
             blocks, ft_dtype_name(p->y));
    return FT_OK;
}

/* The plan's GEMM, and for quantized ones the same GEMM in float. */
static ft_status time_forms(const ft_bench *bench, ft_product p, ft_contender *out, int *count,
                            ft_error *err)
{
    FT_TRY(time_alone(bench, &p, &out[0], err));
    out[0].chosen = true;
    *count = 1;
    if (p.x != FT_I8 && ft_blocks_bits(p.w) == 0)
        return FT_OK;
    p.x = p.y = bench->model->backend->keeps_half ? FT_F16 : FT_F32;
    p.w = FT_F16;
    *count = 2;
    return time_alone(bench, &p, &out[1], err);
}

static ft_status time_contenders(const ft_bench *bench, const ft_product *p, ft_contender *out,
                                 int *count, ft_error *err)
{
    const ft_backend *backend = bench->model->backend;
    if (backend->compare == NULL || p->x != FT_I8)
        return time_forms(bench, *p, out, count, err);
    ft_match match = { p->m, p->n, p->k, p->y, p->activation };
    return backend->compare(bench->model->device, &match, out, count, err);
}

/* ---- Rows --------------------------------------------------------------------------------- */

static void add_contender(ft_bench *bench, const ft_session *session, const ft_product *p, int uses,
                          const ft_contender *c, double chosen)
{
    double operations = 2.0 * (double) p->m * (double) p->n * (double) p->k;
    double best = p->x == FT_I8 ? bench->ceilings.int8 : bench->ceilings.real;
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_FOR_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_FOR_CSV },
        { .name = "device", .text = bench->device, .column = FT_FOR_CSV },
        { .name = "sequences",
          .number = (double) session->batch.sequences,
          .column = FT_FOR_MACHINES },
        { .name = "length",
          .number = (double) ft_bench_length(session),
          .column = FT_FOR_MACHINES },
        { .name = "m", .width = 6, .number = (double) p->m },
        { .name = "n", .width = 6, .number = (double) p->n },
        { .name = "k", .width = 6, .number = (double) p->k },
        { .name = "count", .width = 5, .number = uses },
        { .name = "ms", .number = 1e3 * c->seconds, .digits = 4 },
        { .name = "tops", .number = 1e-12 * operations / c->seconds, .digits = 3 },
        { .name = "peak_fraction",
          .head = "of_peak",
          .number = operations / c->seconds / best,
          .digits = 3 },
        { .name = "relative_time",
          .head = "ratio",
          .width = 6,
          .number = c->seconds / chosen,
          .digits = 2 },
        { .name = "activation", .text = ft_activation_name(p->activation) },
        { .name = "out_dtype", .head = "out", .width = 4, .text = ft_dtype_name(p->y) },
        { .name = "selected", .text = c->chosen ? "yes" : "no", .column = FT_FOR_MACHINES },
        { .name = "kernel", .text = c->name },
    };
    ft_table_row(&bench->products, cells, FT_COUNT(cells));
}

static ft_status add_product(ft_bench *bench, const ft_session *session, const ft_product *p,
                             int uses, ft_error *err)
{
    ft_contender contender[FT_CONTENDERS] = { 0 };
    int count = 0;
    double chosen = (double) NAN;
    FT_TRY(time_contenders(bench, p, contender, &count, err));
    for (int i = 0; i < count; i++)
        if (contender[i].chosen)
            chosen = contender[i].seconds;
    for (int i = 0; i < count; i++)
        add_contender(bench, session, p, uses, &contender[i], chosen);
    return FT_OK;
}

ft_status ft_bench_products(ft_bench *bench, const ft_session *session, ft_error *err)
{
    bool joins = bench->model->backend->compare != NULL;
    int end = session->plan.nop, before = ft_batch_first_op(&session->plan, &session->batch);
    ft_product p;
    for (int at = before; next_product(session, joins, &at, &p); before = at)
        if (count_products(session, joins, before, &p) == 0)
            FT_TRY(add_product(bench, session, &p, count_products(session, joins, end, &p), err));
    return FT_OK;
}
