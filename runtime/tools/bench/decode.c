/*
 * decode.c - one benchmark case of decoding: decode steps of several sequences with a given
 * context.
 *
 * The context is prefilled first, so that the KV cache holds realistic values; then the decode step
 * is repeated, each with the tokens sampled by the previous one.  The time of a step is the
 * interval between the host's receiving the tokens of two consecutive steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/tools/bench/bench.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <math.h>
#include <stdlib.h>

enum { IDS_KEY = 13, CHUNK = 2048 };

/* The step that is repeated. */
typedef struct step {
    ft_session *session;
    int32_t *chosen; /* [sequences] */
    float *logprob;
} step;

static ft_status open_session(ft_session **out, const ft_bench *bench, size_t sequences,
                              size_t context, ft_error *err)
{
    size_t pages = ft_pages_for(context + 1);
    return ft_session_open(out, bench->model,
                           &(ft_session_options){
                               .threads = bench->threads,
                               .max_tokens = sequences > CHUNK ? (int64_t) sequences : CHUNK,
                               .max_sequences = (int64_t) sequences,
                               .context = (int64_t) context + 1,
                               .cache_tokens = (int64_t) (sequences * pages * FT_PAGE),
                           },
                           err);
}

/* Random tokens, different in each sequence. */
static void draw_ids(int32_t *ids, size_t count, size_t seat, int32_t vocabulary)
{
    for (size_t i = 0; i < count; i++)
        ids[i] = (int32_t) ft_noise_below(IDS_KEY, (seat << 24) + i, (uint32_t) vocabulary);
}

/* Prefill `context` tokens of every sequence. */
static ft_status read_context(const step *s, int32_t *ids, size_t context, ft_error *err)
{
    ft_session *session = s->session;
    ft_passages *passages = session->passages;
    for (size_t seat = 0; seat < session->limits.sequences; seat++) {
        draw_ids(ids, context, seat, session->model->config.vocabulary);
        if (!ft_pages_reserve(&passages->pages, seat, context + 1))
            return ft_fail(err, FT_ELIMIT, "the KV cache has no room for %zu tokens", context + 1);
        for (size_t past = 0, count; past < context; past += count) {
            count = ft_min_size(context - past, CHUNK);
            ft_passages_clear(passages);
            ft_passages_add(passages, &(ft_passage){ .seat = seat,
                                                     .past = past,
                                                     .reach = context,
                                                     .ids = ids + past,
                                                     .count = count,
                                                     .wanted = FT_WANT_LAST });
            FT_TRY(ft_session_run_passages(session, err));
        }
    }
    return FT_OK;
}

/* Add the last sampled token of each sequence. */
static void add_steps(const step *s, const ft_bench *bench, size_t context)
{
    ft_passages *passages = s->session->passages;
    ft_passages_clear(passages);
    passages->batch.step = true;
    for (size_t seat = 0; seat < s->session->limits.sequences; seat++) {
        int32_t chosen = -1 - (int32_t) seat;
        ft_choice choice = { .seat = (int32_t) seat,
                             .seed = seat,
                             .known = (int32_t) context,
                             .temperature = bench->top_p > 0.0 ? 1.0f : 0.0f,
                             .top_p = (float) bench->top_p };
        ft_passages_add(passages, &(ft_passage){ .seat = seat,
                                                 .past = context,
                                                 .reach = context + 1,
                                                 .ids = &chosen,
                                                 .count = 1,
                                                 .wanted = FT_WANT_LAST,
                                                 .choice = &choice });
    }
}

/* Run steps as ft_generate() does; `sample` [count] receives their seconds, unless NULL. */
static ft_status take_steps(const step *s, int count, double *sample, ft_error *err)
{
    const ft_backend *backend = s->session->model->backend;
    int most = backend->runs_on ? 2 : 1, begun = 0;
    double before = ft_seconds();
    for (int i = 0; i < count; i++) {
        while (begun < count && begun - i < most) {
            FT_TRY(ft_session_run_passages(s->session, err));
            begun++;
        }
        FT_TRY(backend->chosen(s->session->exec, (unsigned) (begun - i - 1), s->chosen, s->logprob,
                               s->session->limits.sequences, err));
        double now = ft_seconds();
        if (sample != NULL)
            sample[i] = now - before;
        before = now;
    }
    return FT_OK;
}

/* The first and the last step do not overlap with another one, so they are not counted. */
static ft_status time_all(ft_times *out, const step *s, int runs, ft_error *err)
{
    double *sample = ft_array((size_t) runs + 2, sizeof *sample);
    if (sample == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %d times", runs);
    ft_status status = take_steps(s, 3, sample, err);
    if (status == FT_OK && sample[2] < 0.03)
        status = take_steps(s, (int) (0.1 / sample[2]), NULL, err);
    if (status == FT_OK)
        status = take_steps(s, runs + 2, sample, err);
    if (status == FT_OK)
        *out = ft_times_of(sample + 1, (size_t) runs);
    free(sample);
    return status;
}

static void add_row(ft_bench *bench, const step *s, size_t context, const ft_times *times)
{
    const ft_plan *plan = &s->session->plan;
    double sequences = (double) s->session->limits.sequences, bytes = 0.0;
    for (int i = 0; i < plan->nop; i++)
        bytes += ft_work_of(plan, &plan->op[i], &s->session->batch).bytes;
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_FOR_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_FOR_CSV },
        { .name = "device", .text = bench->device, .column = FT_FOR_CSV },
        { .name = "sequences", .number = sequences },
        { .name = "context", .number = (double) context },
        { .name = "median_ms", .number = 1e3 * times->median, .digits = 4 },
        { .name = "min_ms", .number = 1e3 * times->least, .digits = 4 },
        { .name = "p95_ms", .number = 1e3 * times->p95, .digits = 4 },
        { .name = "tokens_per_s", .number = sequences / times->median, .digits = 1 },
        { .name = "gb_per_s", .number = 1e-9 * bytes / times->median, .digits = 1 },
        { .name = "bandwidth_fraction",
          .head = "of_read",
          .number = bytes / times->median / bench->ceilings.read,
          .digits = 3 },
    };
    ft_table_row(&bench->cases, cells, FT_COUNT(cells));
}

static ft_status run_case(ft_bench *bench, const step *s, size_t context, ft_error *err)
{
    int32_t *ids = ft_array(context, sizeof *ids);
    ft_times times;
    ft_status status = ids != NULL ? read_context(s, ids, context, err)
                                   : ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", context);
    free(ids);
    add_steps(s, bench, context);
    if (status == FT_OK)
        status = time_all(&times, s, bench->runs, err);
    if (status != FT_OK)
        return status;
    if (bench->view == FT_BENCH_OPS)
        ft_table_restart(&bench->cases);
    add_row(bench, s, context, &times);
    return bench->view == FT_BENCH_OPS ? ft_bench_ops(bench, s->session, err) : FT_OK;
}

ft_status ft_bench_decode(ft_bench *bench, size_t sequences, size_t context, ft_error *err)
{
    step s = { 0 };
    if (!bench->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is not a decoder", bench->name);
    s.chosen = ft_array(sequences, sizeof *s.chosen);
    s.logprob = ft_array(sequences, sizeof *s.logprob);
    ft_status status = s.chosen != NULL && s.logprob != NULL
                           ? open_session(&s.session, bench, sequences, context, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", sequences);
    if (status == FT_OK)
        status = run_case(bench, &s, context, err);
    ft_session_close(s.session);
    free(s.chosen);
    free(s.logprob);
    return status;
}
