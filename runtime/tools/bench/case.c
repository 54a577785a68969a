/*
 * case.c - one benchmark case: repeated forward passes of random sequences.
 *
 * Inputs are set once; the time is that of the backend's run of the plan.  Latency is the time
 * until the device has finished.  On an asynchronous device, back-to-back runs are timed too, which
 * is the throughput of a busy server.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/explain_gemm.h"
#include "runtime/tools/bench/bench.h"
#include "runtime/tools/synthetic/counter_rng.h"
#include "runtime/tools/synthetic/synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_KEY = 11, SHUFFLE_KEY = 12 };

/* ---- Inputs ------------------------------------------------------------------------------- */

void ft_bench_lengths(size_t *out, size_t count, size_t length, double fill)
{
    double low = 1.0, high = (double) length, mean = fill * high;
    if (2.0 * mean - high >= low)
        low = 2.0 * mean - high;
    else
        high = fmax(2.0 * mean - low, low);
    long before = 0;
    for (size_t i = 0; i < count; i++) { /* rounding the prefix sums preserves the total */
        double n = (double) i + 1.0;
        long sum = lround(low * n + (high - low) * n * n / (2.0 * (double) count));
        out[i] = (size_t) (sum - before);
        before = sum;
    }
    for (size_t i = count; i-- > 1;) {
        size_t other = ft_counter_rng_below(SHUFFLE_KEY, i, (uint32_t) i + 1), swapped = out[i];
        out[i] = out[other];
        out[other] = swapped;
    }
}

static ft_status set_input(ft_session *session, const char *name, int32_t *data, size_t sequences,
                           size_t length, ft_error *err)
{
    ft_tensor input = {
        .dtype = FT_I32, .ndim = 2, .dim = { (int64_t) sequences, (int64_t) length }, .data = data
    };
    return ft_session_set(session, name, &input, err);
}

static ft_status set_inputs(ft_session *session, size_t sequences, size_t length, double fill,
                            ft_error *err)
{
    size_t count = sequences * length;
    int32_t *ids = ft_calloc(count, sizeof *ids), *mask = ft_calloc(count, sizeof *mask);
    size_t *lengths = ft_calloc(sequences, sizeof *lengths);
    ft_status status = FT_OK;
    if (ids == NULL || mask == NULL || lengths == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu token ids", count);
    else {
        ft_bench_lengths(lengths, sequences, length, fill);
        for (size_t i = 0; i < count; i++) {
            ids[i] = (int32_t) ft_counter_rng_below(IDS_KEY, i,
                                                    (uint32_t) session->model->config.vocabulary);
            mask[i] = i % length < lengths[i / length];
        }
        status = set_input(session, "input_ids", ids, sequences, length, err);
        if (status == FT_OK)
            status = set_input(session, "attention_mask", mask, sequences, length, err);
    }
    free(lengths);
    free(mask);
    free(ids);
    return status;
}

/* A session that keeps its inputs, so that runs can be repeated without writing them again. */
static ft_status open_session(ft_session **out, const ft_bench *bench, size_t sequences,
                              size_t length, ft_error *err)
{
    const ft_plan *plan = &bench->model->plan;
    const char **keep = ft_calloc((size_t) plan->nvalue + 1, sizeof *keep);
    size_t count = 0;
    if (keep == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a session");
    for (int i = 0; i < plan->nvalue; i++)
        if (ft_plan_producer(plan, i) < 0 && ft_plan_uses(plan, i) > 0)
            keep[count++] = plan->value[i].name;
    ft_session_options options = { .threads = bench->threads,
                                   .max_tokens = (int64_t) (sequences * length),
                                   .max_sequences = (int64_t) sequences,
                                   .keep = keep };
    ft_status status = ft_session_open(out, bench->model, &options, err);
    free(keep);
    return status;
}

/* ---- Runs --------------------------------------------------------------------------------- */

typedef struct timing {
    ft_bench_times run;
    double queued; /* average seconds of back-to-back runs; NaN if runs are synchronous */
} timing;

static ft_status time_runs(timing *out, const ft_bench_target *target, int runs, ft_error *err)
{
    double *sample = ft_calloc((size_t) runs, sizeof *sample);
    if (sample == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %d times", runs);
    ft_status status = ft_bench_warm_up(target, err);
    for (int i = 0; i < runs && status == FT_OK; i++)
        status = ft_bench_time_runs(target, 1, &sample[i], err);
    if (status == FT_OK)
        out->run = ft_bench_summarize(sample, (size_t) runs);
    free(sample);
    out->queued = (double) NAN;
    if (status == FT_OK && ft_bench_is_async(target))
        status = ft_bench_time_runs(target, runs, &out->queued, err);
    return status;
}

static void add_row(ft_bench *bench, const ft_session *session, const timing *r)
{
    const ft_plan *plan = &session->plan;
    const ft_batch *batch = &session->batch;
    double median = r->run.median, tokens = (double) batch->tokens, operations = 0.0,
           roofline_seconds = 0.0;
    for (int i = 0; i < plan->nop; i++) {
        ft_op_cost work = ft_op_cost_of(plan, &plan->op[i], batch);
        operations += work.int8_ops + work.float_flops;
        roofline_seconds += ft_roofline_seconds(&work, &bench->roofline);
    }
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = bench->device, .column = FT_COLUMN_CSV },
        { .name = "sequences", .head = "seqs", .number = (double) batch->sequences },
        { .name = "length", .number = (double) session->text[FT_PADDED_INPUT].cols },
        { .name = "tokens", .number = tokens },
        { .name = "median_ms", .number = 1e3 * median, .digits = 4 },
        { .name = "min_ms", .number = 1e3 * r->run.min, .digits = 4 },
        { .name = "p95_ms", .number = 1e3 * r->run.p95, .digits = 4 },
        { .name = "queued_ms",
          .number = 1e3 * r->queued,
          .digits = 4,
          .column = isnan(r->queued) ? FT_COLUMN_MACHINE : FT_COLUMN_ALL },
        { .name = "sequences_per_s",
          .head = "seqs/s",
          .number = (double) batch->sequences / median,
          .digits = 1 },
        { .name = "tokens_per_s", .head = "tokens/s", .number = tokens / median, .digits = 0 },
        { .name = "tops", .number = 1e-12 * operations / median, .digits = 3 },
        { .name = "roofline_ms", .head = "roof_ms", .number = 1e3 * roofline_seconds, .digits = 4 },
        { .name = "roofline_fraction",
          .head = "of_roof",
          .number = roofline_seconds / median,
          .digits = 3 },
    };
    ft_table_row(&bench->cases, cells, FT_COUNT(cells));
}

static ft_status run_case(ft_bench *bench, ft_session *session, ft_error *err)
{
    /* Packs and writes the inputs; the timed runs repeat this pass. */
    FT_TRY(ft_session_run(session, err));
    if (bench->verbose)
        FT_TRY(ft_gemm_report_write(session, &session->batch, 1, stderr, err));
    if (bench->view == FT_BENCH_GEMM)
        return ft_bench_gemms(bench, session, err);
    timing r;
    ft_bench_target all = { session->model->backend, session->exec, &session->batch, -1 };
    FT_TRY(time_runs(&r, &all, bench->runs, err));
    if (bench->view == FT_BENCH_OPS)
        ft_table_repeat_header(&bench->cases);
    if (bench->view != FT_BENCH_OPS || bench->cases.format != FT_TABLE_CSV)
        add_row(bench, session, &r);
    return bench->view == FT_BENCH_OPS ? ft_bench_ops(bench, session, r.run.median, err) : FT_OK;
}

ft_status ft_bench_forward(ft_bench *bench, size_t sequences, size_t length, ft_error *err)
{
    ft_session *session;
    FT_TRY(open_session(&session, bench, sequences, length, err));
    ft_status status = ft_config_is_vision(&bench->model->config)
                           ? ft_synthetic_images(session, sequences, err)
                           : set_inputs(session, sequences, length, bench->fill, err);
    if (status == FT_OK)
        status = run_case(bench, session, err);
    ft_session_close(session);
    return status;
}
