/*
 * time.c - timing of runs, and the cost model of operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/bench.h"

#include "runtime/base/clock.h"
#include "runtime/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Time --------------------------------------------------------------------------------- */

bool ft_bench_is_async(const ft_bench_target *target)
{
    return strcmp(target->backend->name, "cpu") != 0;
}

static ft_status run_once(const ft_bench_target *target, ft_error *err)
{
    if (target->op < 0)
        return target->backend->run(target->exec, target->batch, NULL, err);
    return target->backend->run_op(target->exec, target->batch, target->op, err);
}

ft_status ft_bench_time_runs(const ft_bench_target *target, int count, double *seconds,
                             ft_error *err)
{
    double before = ft_monotonic_seconds();
    for (int i = 0; i < count; i++)
        FT_TRY(run_once(target, err));
    FT_TRY(target->backend->wait(target->exec, err));
    *seconds = (ft_monotonic_seconds() - before) / count;
    return FT_OK;
}

ft_status ft_bench_warm_up(const ft_bench_target *target, ft_error *err)
{
    double sum = 0.0, seconds;
    for (int runs = 0; runs < 2 || sum < 0.1; runs++, sum += seconds)
        FT_TRY(ft_bench_time_runs(target, 1, &seconds, err));
    return FT_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The least sample that `percent` of a hundred do not exceed. */
static double percentile(const double *sorted, size_t count, size_t percent)
{
    return sorted[(percent * count + 99) / 100 - 1];
}

ft_bench_times ft_bench_summarize(double *sample, size_t count)
{
    const double none = (double) NAN;
    if (count == 0)
        return (ft_bench_times){ none, none, none, none };
    qsort(sample, count, sizeof *sample, ascending);
    return (ft_bench_times){
        .median = (sample[(count - 1) / 2] + sample[count / 2]) / 2.0,
        .min = sample[0],
        .p95 = percentile(sample, count, 95),
        .p99 = percentile(sample, count, 99),
    };
}

/* ---- Roofline ----------------------------------------------------------------------------- */

double ft_roofline_seconds(const ft_op_cost *work, const ft_roofline *roofline)
{
    double seconds = work->bytes / roofline->copy;
    if (work->int8_ops > 0.0)
        seconds = fmax(seconds, work->int8_ops / roofline->int8_ops);
    if (work->float_flops > 0.0)
        seconds = fmax(seconds, work->float_flops / roofline->float_flops);
    return seconds;
}
