/*
 * beam_search.c - one benchmark case of encoder-decoders: end-to-end beam search.
 *
 * The time is that of ft_beam_search() as seen by its caller, from the source ids to the best
 * hypotheses on the host.  There are no stop tokens, so all hypotheses reach the maximum length.
 * The same search for one new token measures encoder and prefill; the difference is the time of the
 * decode steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/bench.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <math.h>
#include <stdlib.h>

enum { IDS_KEY = 14 };

/* The search that is repeated. */
typedef struct search {
    const ft_bench *bench;
    const ft_bench_beam_search_shape *texts;
    ft_session *session;
    size_t *length;         /* [sources] */
    int32_t *ids;           /* [sources, length] */
    ft_request *request;    /* [sources] */
    ft_beam_params *rules;  /* [sources]: parameters of one step */
    size_t new_tokens_made; /* new tokens of the last search, best hypotheses */
} search;

/* ---- Requests ----------------------------------------------------------------------------- */

/* Capacity for all sources concurrently. */
static ft_status open_session(search *s, ft_error *err)
{
    const ft_bench_beam_search_shape *t = s->texts;
    size_t num_slots = t->sources * t->beams, tokens = t->sources * t->length;
    size_t pages = ft_pages_for_tokens(t->new_tokens + 1),
           source_pages = ft_pages_for_tokens(t->length);
    return ft_session_open(
        &s->session, s->bench->model,
        &(ft_session_options){
            .threads = s->bench->threads,
            .max_tokens = (int64_t) (tokens > num_slots ? tokens : num_slots),
            .max_sequences = (int64_t) num_slots,
            .context = (int64_t) t->new_tokens + 1,
            .cache_tokens = (int64_t) (num_slots * pages * FT_PAGE_TOKENS),
            .source_tokens = (int64_t) (t->sources * source_pages * FT_PAGE_TOKENS),
        },
        err);
}

/* Random sources, without stop tokens. */
static ft_status random_requests(search *s, ft_error *err)
{
    static const int32_t no_ids[1] = { 0 };
    const ft_bench_beam_search_shape *t = s->texts;
    uint32_t vocabulary = (uint32_t) s->bench->model->config.vocabulary;
    s->length = ft_calloc(t->sources, sizeof *s->length);
    s->ids = ft_calloc(t->sources * t->length, sizeof *s->ids);
    s->request = ft_calloc(t->sources, sizeof *s->request);
    s->rules = ft_calloc(t->sources, sizeof *s->rules);
    if (s->length == NULL || s->ids == NULL || s->request == NULL || s->rules == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu sources of %zu tokens", t->sources,
                       t->length);
    for (size_t i = 0; i < t->sources * t->length; i++)
        s->ids[i] = (int32_t) ft_counter_rng_below(IDS_KEY, i, vocabulary);
    ft_bench_lengths(s->length, t->sources, t->length, s->bench->fill);
    for (size_t i = 0; i < t->sources; i++)
        s->request[i] = (ft_request){ .source = s->ids + i * t->length,
                                      .source_tokens = s->length[i],
                                      .stop_ids = no_ids,
                                      .stops = 0 };
    return FT_OK;
}

/* ---- Searches ----------------------------------------------------------------------------- */

static bool count_tokens(void *user, const ft_hypothesis *found)
{
    search *s = user;
    s->new_tokens_made += found->tokens;
    return true;
}

static ft_status search_once(search *s, size_t new_tokens, double *seconds, ft_error *err)
{
    const ft_beam_search_options options = { .beams = (int32_t) s->texts->beams, .n_best = 1 };
    for (size_t i = 0; i < s->texts->sources; i++)
        s->request[i].max_new_tokens = (int32_t) new_tokens;
    s->new_tokens_made = 0;
    double before = ft_monotonic_seconds();
    FT_TRY(
        ft_beam_search(s->session, s->request, s->texts->sources, &options, count_tokens, s, err));
    *seconds = ft_monotonic_seconds() - before;
    return FT_OK;
}

/* Warm up for 0.1 s: caches, clocks, and the CUDA graphs of the batch sizes. */
static ft_status warm_up(search *s, size_t new_tokens, ft_error *err)
{
    double sum = 0.0, seconds;
    for (; sum < 0.1; sum += seconds)
        FT_TRY(search_once(s, new_tokens, &seconds, err));
    return FT_OK;
}

static ft_status time_searches(ft_bench_times *out, search *s, size_t new_tokens, ft_error *err)
{
    size_t runs = (size_t) s->bench->runs;
    double *sample = ft_calloc(runs, sizeof *sample);
    if (sample == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu times", runs);
    ft_status status = warm_up(s, new_tokens, err);
    for (size_t i = 0; i < runs && status == FT_OK; i++)
        status = search_once(s, new_tokens, &sample[i], err);
    if (status == FT_OK)
        *out = ft_bench_summarize(sample, runs);
    free(sample);
    return status;
}

/* ---- Reporting ---------------------------------------------------------------------------- */

static double source_tokens(const search *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->texts->sources; i++)
        sum += s->length[i];
    return (double) sum;
}

/* `all` was timed last, so s->made counts its tokens. */
static void add_row(ft_bench *bench, const search *s, const ft_bench_times *first,
                    const ft_bench_times *all)
{
    const ft_bench_beam_search_shape *t = s->texts;
    double steps = (double) t->new_tokens - 1.0; /* 0 steps: the cell is empty */
    ft_cell cells[] = {
        { .name = "model", .text = bench->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = bench->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = bench->device, .column = FT_COLUMN_CSV },
        { .name = "sources", .number = (double) t->sources },
        { .name = "source_tokens", .number = source_tokens(s) },
        { .name = "beams", .number = (double) t->beams },
        { .name = "new_tokens", .number = (double) t->new_tokens },
        { .name = "median_ms", .number = 1e3 * all->median, .digits = 4 },
        { .name = "min_ms", .number = 1e3 * all->min, .digits = 4 },
        { .name = "p95_ms", .number = 1e3 * all->p95, .digits = 4 },
        { .name = "prefill_ms", .number = 1e3 * first->median, .digits = 4 },
        { .name = "step_ms",
          .number = steps > 0.0 ? 1e3 * (all->median - first->median) / steps : (double) NAN,
          .digits = 4 },
        { .name = "tokens_per_s",
          .number = (double) s->new_tokens_made / all->median,
          .digits = 1 },
    };
    ft_table_row(&bench->cases, cells, FT_COUNT(cells));
}

static ft_status time_case(ft_bench *bench, search *s, ft_error *err)
{
    ft_bench_times first, all;
    FT_TRY(time_searches(&first, s, 1, err));
    FT_TRY(time_searches(&all, s, s->texts->new_tokens, err));
    if (bench->view == FT_BENCH_OPS)
        ft_table_repeat_header(&bench->cases);
    if (bench->view != FT_BENCH_OPS || bench->cases.format != FT_TABLE_CSV)
        add_row(bench, s, &first, &all);
    return FT_OK;
}

static ft_status run_case(ft_bench *bench, search *s, ft_error *err)
{
    FT_TRY(random_requests(s, err));
    FT_TRY(open_session(s, err));
    if (bench->view != FT_BENCH_GEMM)
        FT_TRY(time_case(bench, s, err));
    if (bench->view == FT_BENCH_RUNS)
        return FT_OK;
    FT_TRY(ft_bench_beam_step(s->session, s->request, s->texts, s->rules, err));
    return bench->view == FT_BENCH_OPS ? ft_bench_ops(bench, s->session, (double) NAN, err)
                                       : ft_bench_gemms(bench, s->session, err);
}

ft_status ft_bench_beam_search(ft_bench *bench, const ft_bench_beam_search_shape *texts,
                               ft_error *err)
{
    search s = { .bench = bench, .texts = texts };
    ft_status status = run_case(bench, &s, err);
    ft_session_close(s.session);
    free(s.rules);
    free(s.request);
    free(s.ids);
    free(s.length);
    return status;
}
