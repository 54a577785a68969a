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

static bool same_gemm(const ft_gemm_problem *a, const ft_gemm_problem *b)
{
    return a->m == b->m && ft_gemm_problem_same_shape(a, b);
}

/*
 * The next GEMM of the pass, from operation *at on; *at moves past it.  `joins`: the device merges
 * linears of the same input and shape, such as Q, K and V, into one GEMM.
 */
static bool next_gemm(const ft_session *session, bool merges_qkv, int *at, ft_gemm_problem *out)
{
    const ft_plan *plan = &session->plan;
    while (*at < plan->nop && !ft_op_is_gemm(plan->op[*at].kind))
        ++*at;
    if (*at == plan->nop)
        return false;
    const ft_op *op = &plan->op[(*at)++];
    ft_gemm_problem one = ft_bench_gemm_of(plan, op, &session->batch);
    *out = one;
    for (; merges_qkv && *at < plan->nop && ft_op_is_gemm(plan->op[*at].kind); ++*at) {
        ft_gemm_problem other = ft_bench_gemm_of(plan, &plan->op[*at], &session->batch);
        if (plan->op[*at].in[0] != op->in[0] || !same_gemm(&one, &other))
            break;
        out->n += one.n;
        out->linears++;
    }
    return true;
}

/* Number of GEMMs equal to `p` before operation `end`. */
static int count_gemms(const ft_session *session, bool merges_qkv, int end,
                       const ft_gemm_problem *p)
{
    ft_gemm_problem other;
    int count = 0, at = ft_batch_first_op(&session->plan, &session->batch);
    while (at < end && next_gemm(session, merges_qkv, &at, &other))
        count += at <= end && same_gemm(p, &other);
    return count;
}

/* ---- Candidates --------------------------------------------------------------------------- */

static ft_status time_gemm(const ft_bench *bench, const ft_gemm_problem *p, ft_gemm_candidate *out,
                           ft_error *err)
{
    ft_bench_times times;
    FT_TRY(ft_bench_gemm_time(&times, p, bench->model->backend, bench->model->device,
                              bench->threads, err));
    out->seconds = times.median;
    char groupwise[18] = ""; /* with any int32 */
    if (ft_groupwise_bits(p->w) != 0)
        snprintf(groupwise, sizeof groupwise, "/%d%s", (int) p->group,
                 p->int8_activations ? " int8" : "");
    snprintf(out->name, sizeof out->name, "%s.%s%s->%s", ft_dtype_name(p->x), ft_dtype_name(p->w),
             groupwise, ft_dtype_name(p->y));
    return FT_OK;
}

/* The plan's GEMM, and for quantized ones the same GEMM in float. */
static ft_status time_int8_and_float(const ft_bench *bench, ft_gemm_problem p,
                                     ft_gemm_candidate *out, int *count, ft_error *err)
{
    FT_TRY(time_gemm(bench, &p, &out[0], err));
    out[0].chosen = true;
    *count = 1;
    if (p.x != FT_I8 && ft_groupwise_bits(p.w) == 0)
        return FT_OK;
    p.x = p.y = bench->model->backend->f16_activations ? FT_F16 : FT_F32;
    p.w = FT_F16;
    *count = 2;
    return time_gemm(bench, &p, &out[1], err);
}

static ft_status time_candidates(const ft_bench *bench, const ft_gemm_problem *p,
                                 ft_gemm_candidate *out, int *count, ft_error *err)
{
    const ft_backend *backend = bench->model->backend;
    if (backend->benchmark_gemm == NULL || p->x != FT_I8)
        return time_int8_and_float(bench, *p, out, count, err);
    return backend->benchmark_gemm(bench->model->device, p, out, count, err);
}

/* ---- Rows --------------------------------------------------------------------------------- */

static void add_candidate(ft_bench *bench, const ft_session *session, const ft_gemm_problem *p,
                          int uses, const ft_gemm_candidate *c, double chosen)
{
    double operations = 2.0 * (double) p->m * (double) p->n * (double) p->k;
    double best = p->x == FT_I8 ? bench->roofline.int8_ops : bench->roofline.float_flops;
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = bench->device, .column = FT_COLUMN_CSV },
        { .name = "sequences",
          .number = (double) session->batch.sequences,
          .column = FT_COLUMN_MACHINE },
        { .name = "length",
          .number = (double) ft_bench_length(session),
          .column = FT_COLUMN_MACHINE },
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
        { .name = "selected", .text = c->chosen ? "yes" : "no", .column = FT_COLUMN_MACHINE },
        { .name = "kernel", .text = c->name },
    };
    ft_table_row(&bench->gemms, cells, FT_COUNT(cells));
}

static ft_status add_gemm(ft_bench *bench, const ft_session *session, const ft_gemm_problem *p,
                          int uses, ft_error *err)
{
    ft_gemm_candidate candidate[FT_MAX_GEMM_CANDIDATES] = { 0 };
    int count = 0;
    double chosen = (double) NAN;
    FT_TRY(time_candidates(bench, p, candidate, &count, err));
    for (int i = 0; i < count; i++)
        if (candidate[i].chosen)
            chosen = candidate[i].seconds;
    for (int i = 0; i < count; i++)
        add_candidate(bench, session, p, uses, &candidate[i], chosen);
    return FT_OK;
}

ft_status ft_bench_gemms(ft_bench *bench, const ft_session *session, ft_error *err)
{
    bool merges_qkv = bench->model->backend->benchmark_gemm != NULL;
    int end = session->plan.nop, before = ft_batch_first_op(&session->plan, &session->batch);
    ft_gemm_problem p;
    for (int at = before; next_gemm(session, merges_qkv, &at, &p); before = at)
        if (count_gemms(session, merges_qkv, before, &p) == 0)
            FT_TRY(add_gemm(bench, session, &p, count_gemms(session, merges_qkv, end, &p), err));
    return FT_OK;
}
