/*
 * scheme_times.c - collect the times of a model in all schemes, which ft-calibrate --times reads.
 *
 * calibrate/times/times_file.h describes the format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/affix.h"
#include "runtime/base/json_build.h"
#include "runtime/tools/bench/bench.h"

#include <math.h>

enum { FORMAT = 1 };

/* Microseconds with three digits, so that files stay small and texts exact. */
static json_t *microseconds(double seconds)
{
    return json_real(round(1e9 * seconds) / 1e3);
}

static json_t *pass_json(const ft_bench *bench, const ft_session *session, double pass)
{
    return json_pack("{ss, ss, sI, sI, so, si}", "scheme", bench->scheme, "pass",
                     session->batch.decode_step ? "decode" : "forward", "sequences",
                     (json_int_t) session->batch.sequences, "length",
                     (json_int_t) ft_bench_length(session), "us", microseconds(pass), "count",
                     bench->runs);
}

/*
 * The same name in all schemes: a linear has that of its weight, because lowering makes the
 * activation behind it a part of it; of others, lowering renames the float part of an output that
 * is also quantized.
 */
static json_t *name_json(const ft_plan *plan, const ft_op *op)
{
    static const char suffix[] = ".float";
    if (op->kind == FT_OP_LINEAR)
        return json_string(plan->weight[op->weight[0]].name);
    const char *name = plan->value[ft_op_label_value(op)].name;
    size_t length = strlen(name);
    return json_stringn(name, ft_ends_with(name, suffix) ? length - strlen(suffix) : length);
}

static json_t *op_json(const ft_bench *bench, const ft_plan *plan, const ft_op *op, double seconds)
{
    json_t *json =
        json_pack("{ss, ss, so, so, si}", "scheme", bench->scheme, "kind", ft_op_name(op->kind),
                  "name", name_json(plan, op), "us", microseconds(seconds), "count", bench->runs);
    if (op->kind == FT_OP_LINEAR) {
        const ft_weight *weight = &plan->weight[op->weight[0]];
        ft_json_set(&json, "rows", json_integer((json_int_t) weight->rows));
        ft_json_set(&json, "cols", json_integer((json_int_t) weight->cols));
    }
    return json;
}

void ft_bench_scheme_times_add(ft_bench *bench, const ft_session *session, double pass,
                               const double *seconds)
{
    ft_bench_scheme_times *times = &bench->times;
    const ft_plan *plan = &session->plan;
    if (!times->is_wanted)
        return;
    ft_json_append(&times->passes, pass_json(bench, session, pass));
    for (int i = ft_batch_first_op(plan, &session->batch);
         i < ft_batch_end_op(plan, &session->batch); i++)
        ft_json_append(&times->ops, op_json(bench, plan, &plan->op[i], seconds[i]));
}

json_t *ft_bench_scheme_times_json(const ft_bench_scheme_times *times, int32_t group)
{
    json_t *json = json_pack("{si, si}", "format", FORMAT, "group", (int) group);
    ft_json_set(&json, "passes", json_incref(times->passes));
    ft_json_set(&json, "ops", json_incref(times->ops));
    return json;
}

void ft_bench_scheme_times_fini(ft_bench_scheme_times *times)
{
    json_decref(times->passes);
    json_decref(times->ops);
    *times = (ft_bench_scheme_times){ .is_wanted = false };
}
