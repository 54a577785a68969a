/*
 * bench_gemm.c - the products of a plan, each shape alone, beside the same product in float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench.h"

#include <math.h>

static bool same_product(const ft_product *a, const ft_product *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->x == b->x && a->w == b->w &&
           a->y == b->y && a->activation == b->activation;
}

/* Whether operation `index` is a product unlike all before it. */
static bool is_new(const ft_session *session, int index, ft_product *out)
{
    const ft_plan *plan = &session->plan;
    if (plan->op[index].kind != FT_OP_LINEAR)
        return false;
    *out = ft_product_of(plan, &plan->op[index], &session->batch);
    for (int i = 0; i < index; i++) {
        if (plan->op[i].kind != FT_OP_LINEAR)
            continue;
        ft_product other = ft_product_of(plan, &plan->op[i], &session->batch);
        if (same_product(out, &other))
            return false;
    }
    return true;
}

static int uses_of(const ft_session *session, const ft_product *p)
{
    int uses = 0;
    for (int i = 0; i < session->plan.nop; i++) {
        ft_product other;
        if (session->plan.op[i].kind != FT_OP_LINEAR)
            continue;
        other = ft_product_of(&session->plan, &session->plan.op[i], &session->batch);
        uses += same_product(p, &other);
    }
    return uses;
}

/* What float would take for the same: NaN for a product that is float already. */
static ft_status time_float(const ft_bench *bench, ft_product p, double *seconds, ft_error *err)
{
    *seconds = (double) NAN;
    if (p.x != FT_I8)
        return FT_OK;
    p.x = p.y = bench->model->backend->keeps_half ? FT_F16 : FT_F32;
    p.w = FT_F16;
    ft_times times;
    FT_TRY(ft_product_time(&times, &p, bench->model->backend, bench->model->device, bench->threads,
                           err));
    *seconds = times.median;
    return FT_OK;
}

static ft_status add_product(ft_bench *bench, const ft_session *session, const ft_product *p,
                             ft_error *err)
{
    ft_times times;
    double real;
    double operations = 2.0 * (double) p->m * (double) p->n * (double) p->k;
    double best = p->x == FT_I8 ? bench->ceilings.int8 : bench->ceilings.real;
    char form[32];
    snprintf(form, sizeof form, "%s.%s->%s", ft_dtype_name(p->x), ft_dtype_name(p->w),
             ft_dtype_name(p->y));
    FT_TRY(ft_product_time(&times, p, bench->model->backend, bench->model->device, bench->threads,
                           err));
    double seconds = times.median;
    FT_TRY(time_float(bench, *p, &real, err));
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_FOR_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_FOR_CSV },
        { .name = "device", .text = bench->device, .column = FT_FOR_CSV },
        { .name = "sequences", .number = (double) session->rows, .column = FT_FOR_MACHINES },
        { .name = "length", .number = (double) session->cols, .column = FT_FOR_MACHINES },
        { .name = "m", .number = (double) p->m },
        { .name = "n", .number = (double) p->n },
        { .name = "k", .number = (double) p->k },
        { .name = "count", .number = uses_of(session, p) },
        { .name = "ms", .number = 1e3 * seconds, .digits = 4 },
        { .name = "tops", .number = 1e-12 * operations / seconds, .digits = 3 },
        { .name = "of_best", .number = operations / seconds / best, .digits = 3 },
        { .name = "float_ms", .number = 1e3 * real, .digits = 4 },
        { .name = "float_ratio", .number = real / seconds, .digits = 2 },
        { .name = "form", .text = form },
        { .name = "activation", .text = ft_activation_name(p->activation) },
    };
    ft_table_row(&bench->products, cells, FT_COUNT(cells));
    return FT_OK;
}

ft_status ft_bench_products(ft_bench *bench, const ft_session *session, ft_error *err)
{
    ft_product p;
    for (int i = 0; i < session->plan.nop; i++)
        if (is_new(session, i, &p))
            FT_TRY(add_product(bench, session, &p, err));
    return FT_OK;
}
