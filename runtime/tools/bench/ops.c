/*
 * ops.c - benchmark the operations of a plan one by one.
 *
 * On an asynchronous device each operation runs several times back to back, since synchronization
 * takes longer than many operations.  Its operands are then in the cache, and operations neither
 * overlap nor are fused, so the sum is not the time of a forward pass.  None of this applies to the
 * CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 20 }; /* back-to-back runs of one operation */

/* The operations of the session's last pass: begin .. end - 1 of its plan. */
typedef struct op_range {
    int begin, end;
} op_range;

static op_range op_range_of(const ft_session *session)
{
    return (op_range){ ft_batch_first_op(&session->plan, &session->batch),
                       ft_batch_end_op(&session->plan, &session->batch) };
}

/* Seconds of each operation: medians of bench->runs samples. */
static ft_status time_ops(double *out, const ft_bench *bench, const ft_session *session,
                          double *sample, ft_error *err)
{
    op_range p = op_range_of(session);
    size_t runs = (size_t) bench->runs;
    ft_bench_target target = { session->model->backend, session->exec, &session->batch, 0 };
    int repeats = ft_bench_is_async(&target) ? REPEATS : 1;
    for (size_t run = 0; run < runs; run++)
        for (target.op = p.begin; target.op < p.end; target.op++)
            FT_TRY(ft_bench_time_runs(&target, repeats, &sample[(size_t) target.op * runs + run],
                                      err));
    for (int i = p.begin; i < p.end; i++)
        out[i] = ft_bench_summarize(sample + (size_t) i * runs, runs).median;
    return FT_OK;
}

static void add_op(ft_bench *bench, const ft_session *session, int index, double seconds,
                   double total)
{
    const ft_plan *plan = &session->plan;
    const ft_op *op = &plan->op[index];
    ft_op_cost work = ft_op_cost_of(plan, op, &session->batch);
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
        { .name = "op", .number = index },
        { .name = "ms", .number = 1e3 * seconds, .digits = 4 },
        { .name = "fraction", .number = seconds / total, .digits = 4 },
        { .name = "tops",
          .number = 1e-12 * (work.int8_ops + work.float_flops) / seconds,
          .digits = 3 },
        { .name = "gb_per_s", .number = 1e-9 * work.bytes / seconds, .digits = 1 },
        { .name = "roofline_fraction",
          .head = "of_roof",
          .number = ft_roofline_seconds(&work, &bench->roofline) / seconds,
          .digits = 3 },
        { .name = "kind", .text = ft_op_name(op->kind) },
        { .name = "name", .text = plan->value[ft_op_label_value(op)].name },
    };
    ft_table_row(&bench->ops, cells, FT_COUNT(cells));
}

static void add_kind_row(ft_bench *bench, const ft_session *session, const char *kind, int count,
                         double seconds, double total)
{
    ft_cell cells[] = {
        { .name = "sequences",
          .number = (double) session->batch.sequences,
          .column = FT_COLUMN_MACHINE },
        { .name = "length",
          .number = (double) ft_bench_length(session),
          .column = FT_COLUMN_MACHINE },
        { .name = "count", .number = count },
        { .name = "ms", .number = 1e3 * seconds, .digits = 4 },
        { .name = "fraction", .number = seconds / total, .digits = 4 },
        { .name = "kind", .text = kind },
    };
    ft_table_row(&bench->kinds, cells, FT_COUNT(cells));
}

static void add_op_kind(ft_bench *bench, const ft_session *session, ft_op_kind kind,
                        const double *seconds, double total)
{
    double sum = 0.0;
    op_range p = op_range_of(session);
    int count = 0;
    for (int i = p.begin; i < p.end; i++)
        if (session->plan.op[i].kind == kind) {
            sum += seconds[i];
            count++;
        }
    if (count > 0)
        add_kind_row(bench, session, ft_op_name(kind), count, sum, total);
}

static void blank_line(const ft_bench *bench)
{
    if (bench->ops.format == FT_TABLE_TEXT)
        putchar('\n');
}

static void report(ft_bench *bench, const ft_session *session, const double *seconds)
{
    op_range p = op_range_of(session);
    double total = 0.0;
    for (int i = p.begin; i < p.end; i++)
        total += seconds[i];
    blank_line(bench);
    ft_table_repeat_header(&bench->ops);
    for (int i = p.begin; i < p.end; i++)
        add_op(bench, session, i, seconds[i], total);
    if (bench->kinds.format == FT_TABLE_CSV) /* CSV output is a single table */
        return;
    blank_line(bench);
    ft_table_repeat_header(&bench->kinds);
    for (int kind = 0; kind < FT_NUM_OP_KINDS; kind++)
        add_op_kind(bench, session, (ft_op_kind) kind, seconds, total);
    if (bench->ops.format == FT_TABLE_TEXT)
        add_kind_row(bench, session, "total", p.end - p.begin, total, total);
    blank_line(bench);
}

ft_status ft_bench_ops(ft_bench *bench, const ft_session *session, double pass, ft_error *err)
{
    size_t count = (size_t) session->plan.nop;
    double *seconds = ft_calloc(count, sizeof *seconds);
    double *sample = ft_calloc(count * (size_t) bench->runs, sizeof *sample);
    ft_status status = FT_OK;
    if (seconds == NULL || sample == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for the times of %zu operations", count);
    else
        status = time_ops(seconds, bench, session, sample, err);
    if (status == FT_OK) {
        report(bench, session, seconds);
        ft_bench_scheme_times_add(bench, session, pass, seconds);
    }
    free(sample);
    free(seconds);
    return status;
}
