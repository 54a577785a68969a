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
    size_t pages = ft_pages_for_tokens(context + 1);
    return ft_session_open(out, bench->model,
                           &(ft_session_options){
                               .threads = bench->threads,
                               .max_tokens = sequences > CHUNK ? (int64_t) sequences : CHUNK,
                               .max_sequences = (int64_t) sequences,
                               .context = (int64_t) context + 1,
                               .cache_tokens = (int64_t) (sequences * pages * FT_PAGE_TOKENS),
                           },
                           err);
}

/* Random tokens, different in each sequence. */
static void random_ids(int32_t *ids, size_t count, size_t slot, int32_t vocabulary)
{
    for (size_t i = 0; i < count; i++)
        ids[i] = (int32_t) ft_counter_rng_below(IDS_KEY, (slot << 24) + i, (uint32_t) vocabulary);
}

/* Prefill `context` tokens of every sequence. */
static ft_status read_context(const step *s, int32_t *ids, size_t context, ft_error *err)
{
    ft_session *session = s->session;
    ft_chunk_batch *chunks = session->chunks;
    for (size_t slot = 0; slot < session->limits.sequences; slot++) {
        random_ids(ids, context, slot, session->model->config.vocabulary);
        if (!ft_page_table_reserve(&chunks->pages, slot, context + 1))
            return ft_fail(err, FT_ELIMIT, "the KV cache has no room for %zu tokens", context + 1);
        for (size_t n_past = 0, count; n_past < context; n_past += count) {
            count = ft_min_size(context - n_past, CHUNK);
            ft_chunk_batch_clear(chunks);
            ft_chunk_batch_add(chunks, &(ft_prefill_chunk){ .slot = slot,
                                                            .n_past = n_past,
                                                            .n_tokens = context,
                                                            .ids = ids + n_past,
                                                            .count = count,
                                                            .logits = FT_LOGITS_LAST });
            FT_TRY(ft_session_run_chunks(session, err));
        }
    }
    return FT_OK;
}

/* Add the last sampled token of each sequence. */
static void add_steps(const step *s, const ft_bench *bench, size_t context)
{
    ft_chunk_batch *chunks = s->session->chunks;
    ft_chunk_batch_clear(chunks);
    chunks->batch.decode_step = true;
    for (size_t slot = 0; slot < s->session->limits.sequences; slot++) {
        int32_t chosen = -1 - (int32_t) slot;
        ft_sampling_params sampling = { .slot = (int32_t) slot,
                                        .seed = slot,
                                        .n_tokens = (int32_t) context,
                                        .temperature = bench->top_p > 0.0 ? 1.0f : 0.0f,
                                        .top_p = (float) bench->top_p };
        ft_chunk_batch_add(chunks, &(ft_prefill_chunk){ .slot = slot,
                                                        .n_past = context,
                                                        .n_tokens = context + 1,
                                                        .ids = &chosen,
                                                        .count = 1,
                                                        .logits = FT_LOGITS_LAST,
                                                        .sampling = &sampling });
    }
}

/* Run steps as ft_generate() does; `sample` [count] receives their seconds, unless NULL. */
static ft_status run_steps(const step *s, int count, double *sample, ft_error *err)
{
    const ft_backend *backend = s->session->model->backend;
    int max_in_flight = backend->runs_async ? 2 : 1, launched = 0;
    double before = ft_monotonic_seconds();
    for (int i = 0; i < count; i++) {
        while (launched < count && launched - i < max_in_flight) {
            FT_TRY(ft_session_run_chunks(s->session, err));
            launched++;
        }
        FT_TRY(backend->chosen(s->session->exec, (unsigned) (launched - i - 1), s->chosen,
                               s->logprob, s->session->limits.sequences, err));
        double now = ft_monotonic_seconds();
        if (sample != NULL)
            sample[i] = now - before;
        before = now;
    }
    return FT_OK;
}

/* The first and the last step do not overlap with another one, so they are not counted. */
static ft_status time_all(ft_bench_times *out, const step *s, int runs, ft_error *err)
{
    double *sample = ft_calloc((size_t) runs + 2, sizeof *sample);
    if (sample == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %d times", runs);
    ft_status status = run_steps(s, 3, sample, err);
    if (status == FT_OK && sample[2] < 0.03)
        status = run_steps(s, (int) (0.1 / sample[2]), NULL, err);
    if (status == FT_OK)
        status = run_steps(s, runs + 2, sample, err);
    if (status == FT_OK)
        *out = ft_bench_summarize(sample + 1, (size_t) runs);
    free(sample);
    return status;
}

static void add_row(ft_bench *bench, const step *s, size_t context, const ft_bench_times *times)
{
    const ft_plan *plan = &s->session->plan;
    double sequences = (double) s->session->limits.sequences, bytes = 0.0, roofline_seconds = 0.0;
    for (int i = 0; i < plan->nop; i++) {
        ft_op_cost work = ft_op_cost_of(plan, &plan->op[i], &s->session->batch);
        bytes += work.bytes;
        roofline_seconds += ft_roofline_seconds(&work, &bench->roofline);
    }
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = bench->device, .column = FT_COLUMN_CSV },
        { .name = "sequences", .number = sequences },
        { .name = "context", .number = (double) context },
        { .name = "median_ms", .number = 1e3 * times->median, .digits = 4 },
        { .name = "min_ms", .number = 1e3 * times->min, .digits = 4 },
        { .name = "p95_ms", .number = 1e3 * times->p95, .digits = 4 },
        { .name = "tokens_per_s", .number = sequences / times->median, .digits = 1 },
        { .name = "gb_per_s", .number = 1e-9 * bytes / times->median, .digits = 1 },
        { .name = "bandwidth_fraction",
          .head = "of_read",
          .number = bytes / times->median / bench->roofline.read,
          .digits = 3 },
        { .name = "roofline_ms", .head = "roof_ms", .number = 1e3 * roofline_seconds, .digits = 4 },
    };
    ft_table_row(&bench->cases, cells, FT_COUNT(cells));
}

static ft_status run_case(ft_bench *bench, const step *s, size_t context, ft_error *err)
{
    int32_t *ids = ft_calloc(context, sizeof *ids);
    ft_bench_times times;
    ft_status status = ids != NULL ? read_context(s, ids, context, err)
                                   : ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", context);
    free(ids);
    add_steps(s, bench, context);
    if (status == FT_OK)
        status = time_all(&times, s, bench->runs, err);
    if (status != FT_OK)
        return status;
    if (bench->view == FT_BENCH_OPS)
        ft_table_repeat_header(&bench->cases);
    add_row(bench, s, context, &times);
    return bench->view == FT_BENCH_OPS ? ft_bench_ops(bench, s->session, times.median, err) : FT_OK;
}

ft_status ft_bench_decode(ft_bench *bench, size_t sequences, size_t context, ft_error *err)
{
    step s = { 0 };
    if (!bench->model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: is not a decoder", bench->name);
    s.chosen = ft_calloc(sequences, sizeof *s.chosen);
    s.logprob = ft_calloc(sequences, sizeof *s.logprob);
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
