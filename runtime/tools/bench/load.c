/*
 * load.c - one benchmark case of an engine under load: requests that arrive by a Poisson process,
 * whether or not earlier ones have ended.
 *
 * Times count from the arrival of a request, not from its submission.  Afterwards a few requests
 * are generated alone: an engine promises the same tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/bench/bench.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { IDS_KEY = 17, ARRIVAL_KEY = 18, CHECKED = 4, WARM_TOKENS = 8 };

static const int32_t no_ids[1] = { 0 };

typedef struct load load;

/* A request and what became of it. */
typedef struct arrival {
    load *load;
    double time, last; /* of its arrival and its last token so far, on the monotonic clock */
    size_t prompt_tokens, new_tokens, tokens;
    uint64_t hash; /* of all tokens */
} arrival;

struct load {
    ft_bench *bench;
    const ft_bench_load_shape *shape;
    arrival *arrival; /* [count] */
    size_t count;
    int32_t *ids;                  /* [length] */
    double *first_token;           /* [count]: seconds from the arrival to the first token */
    double *between_tokens;        /* [count * new_tokens]: seconds */
    size_t num_first, num_between; /* so far */
    double last;                   /* time of the last token of all */
};

/* ---- Requests ----------------------------------------------------------------------------- */

/* Arrivals in `seconds` seconds; their times count from 0. */
static ft_status draw_arrivals(load *l, ft_error *err)
{
    const ft_bench_load_shape *s = l->shape;
    double now = 0.0;
    size_t capacity = 0, length = ft_max_size(s->length, s->new_tokens);
    while (l->count == 0 || now < s->seconds) {
        if (l->count == capacity) {
            arrival *grown = ft_array_grow(l->arrival, &capacity, 64, sizeof *grown);
            if (grown == NULL)
                return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", l->count + 1);
            l->arrival = grown;
        }
        double uniform = (double) (ft_counter_rng(ARRIVAL_KEY, l->count) >> 11) * 0x1p-53;
        l->arrival[l->count++] = (arrival){ .load = l, .time = now };
        now -= log1p(-uniform) / s->rate;
    }
    size_t *lengths = ft_calloc(l->count, sizeof *lengths);
    l->ids = ft_calloc(length, sizeof *l->ids);
    l->first_token = ft_calloc(l->count, sizeof *l->first_token);
    l->between_tokens = ft_calloc(l->count * s->new_tokens, sizeof *l->between_tokens);
    if (lengths == NULL || l->ids == NULL || l->first_token == NULL || l->between_tokens == NULL) {
        free(lengths);
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", l->count);
    }
    ft_bench_lengths(lengths, l->count, s->length, l->bench->fill);
    for (size_t i = 0; i < l->count; i++)
        l->arrival[i].prompt_tokens = lengths[i];
    /* In reverse, so that long prompts do not get long answers. */
    ft_bench_lengths(lengths, l->count, s->new_tokens, l->bench->fill);
    for (size_t i = 0; i < l->count; i++)
        l->arrival[i].new_tokens = lengths[l->count - 1 - i];
    free(lengths);
    return FT_OK;
}

/* Request `index`, with random tokens in l->ids. */
static ft_request request_of(const load *l, size_t index)
{
    const arrival *a = &l->arrival[index];
    uint32_t vocabulary = (uint32_t) l->bench->model->config.vocabulary;
    for (size_t i = 0; i < a->prompt_tokens; i++)
        l->ids[i] = (int32_t) ft_counter_rng_below(IDS_KEY, (index << 24) + i, vocabulary);
    return (ft_request){ .prompt = l->ids,
                         .prompt_tokens = a->prompt_tokens,
                         .max_new_tokens = (int32_t) a->new_tokens,
                         .temperature = l->bench->top_p > 0.0 ? 1.0f : 0.0f,
                         .top_p = (float) l->bench->top_p,
                         .seed = index,
                         .stop_ids = no_ids,
                         .stops = 0 };
}

static bool hash_token(void *user, const ft_token *token)
{
    uint64_t *hash = user;
    *hash = ft_counter_rng(*hash, (size_t) (uint32_t) token->id);
    return true;
}

static bool take_token(void *user, const ft_token *token)
{
    arrival *a = user;
    load *l = a->load;
    double now = ft_monotonic_seconds();
    if (a->tokens++ == 0)
        l->first_token[l->num_first++] = now - a->time;
    else
        l->between_tokens[l->num_between++] = now - a->last;
    a->last = l->last = now;
    return hash_token(&a->hash, token);
}

/* ---- The load ----------------------------------------------------------------------------- */

static ft_status open_engine(const load *l, ft_engine **engine, ft_error *err)
{
    const ft_bench_load_shape *s = l->shape;
    size_t pages = ft_pages_for_tokens(s->length + s->new_tokens);
    return ft_engine_open(
        engine, l->bench->model,
        &(ft_engine_options){ .threads = l->bench->threads,
                              .max_sequences = (int64_t) s->sequences,
                              .context = (int64_t) (s->length + s->new_tokens),
                              .cache_tokens = (int64_t) (s->sequences * pages * FT_PAGE_TOKENS),
                              .queue = (int64_t) ft_max_size(l->count, s->sequences) },
        err);
}

/* As many short requests as run at the same time, for caches, clocks and kernels. */
static ft_status warm_up(const load *l, ft_engine *engine, ft_error *err)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < l->shape->sequences; i++) {
        ft_request r = request_of(l, i % l->count);
        r.max_new_tokens = WARM_TOKENS;
        r.prompt_tokens = 1 + r.prompt_tokens / 2;
        FT_TRY(ft_engine_submit(
            engine, &(ft_engine_request){ .generate = &r, .on_token = hash_token, .user = &hash },
            NULL, err));
    }
    return ft_engine_drain(engine, err);
}

static void sleep_until(double time)
{
    double whole = floor(time);
    struct timespec t = { .tv_sec = (time_t) whole, .tv_nsec = (long) (1e9 * (time - whole)) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static ft_status submit_all(load *l, ft_engine *engine, ft_error *err)
{
    double before = ft_monotonic_seconds();
    for (size_t i = 0; i < l->count; i++) {
        arrival *a = &l->arrival[i];
        ft_request r = request_of(l, i);
        a->time += before;
        sleep_until(a->time);
        FT_TRY(ft_engine_submit(
            engine, &(ft_engine_request){ .generate = &r, .on_token = take_token, .user = a }, NULL,
            err));
    }
    return ft_engine_drain(engine, err);
}

static ft_status run_load(load *l, ft_error *err)
{
    ft_engine *engine;
    FT_TRY(open_engine(l, &engine, err));
    ft_status status = warm_up(l, engine, err);
    if (status == FT_OK)
        status = submit_all(l, engine, err);
    ft_engine_close(engine, NULL);
    return status;
}

/* ---- Results ------------------------------------------------------------------------------ */

/* Every request must get all of its tokens, and a few of them the tokens that they get alone. */
static ft_status check_answers(load *l, ft_error *err)
{
    ft_session *session;
    for (size_t i = 0; i < l->count; i++)
        if (l->arrival[i].tokens != l->arrival[i].new_tokens)
            return ft_fail(err, FT_EDEVICE, "%s: request %zu got %zu of %zu tokens", l->bench->name,
                           i, l->arrival[i].tokens, l->arrival[i].new_tokens);
    FT_TRY(ft_session_open(
        &session, l->bench->model,
        &(ft_session_options){ .threads = l->bench->threads,
                               .max_sequences = 1,
                               .context = (int64_t) (l->shape->length + l->shape->new_tokens) },
        err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < CHECKED && status == FT_OK; i++) {
        size_t index = i * (l->count - 1) / (CHECKED - 1);
        ft_request r = request_of(l, index);
        uint64_t alone = 0;
        status = ft_generate(session, &r, 1, NULL, hash_token, &alone, err);
        if (status == FT_OK && alone != l->arrival[index].hash)
            status = ft_fail(err, FT_EDEVICE, "%s: request %zu got other tokens than alone",
                             l->bench->name, index);
    }
    ft_session_close(session);
    return status;
}

static void add_row(const load *l)
{
    const ft_bench *b = l->bench;
    const ft_bench_load_shape *s = l->shape;
    const arrival *last = &l->arrival[l->count - 1];
    double seconds = l->last - l->arrival[0].time;
    const ft_bench_times first = ft_bench_summarize(l->first_token, l->num_first),
                         between = ft_bench_summarize(l->between_tokens, l->num_between);
    ft_cell cells[] = {
        { .name = "model", .text = b->name, .column = FT_COLUMN_CSV },
        { .name = "scheme", .text = b->scheme, .column = FT_COLUMN_CSV },
        { .name = "device", .text = b->device, .column = FT_COLUMN_CSV },
        { .name = "request_rate", .head = "rate", .number = s->rate, .digits = 2 },
        { .name = "sequences", .number = (double) s->sequences },
        { .name = "length", .number = (double) s->length },
        { .name = "new_tokens", .number = (double) s->new_tokens },
        { .name = "requests", .number = (double) l->count },
        { .name = "drain_s", .number = l->last - last->time, .digits = 2 },
        { .name = "tokens_per_s",
          .head = "tokens/s",
          .number = (double) (l->num_first + l->num_between) / seconds,
          .digits = 1 },
        { .name = "ttft_p50_ms", .number = 1e3 * first.median, .digits = 2 },
        { .name = "ttft_p99_ms", .number = 1e3 * first.p99, .digits = 2 },
        { .name = "itl_p50_ms", .number = 1e3 * between.median, .digits = 3 },
        { .name = "itl_p99_ms", .number = 1e3 * between.p99, .digits = 3 },
    };
    ft_table_row(&l->bench->cases, cells, FT_COUNT(cells));
}

ft_status ft_bench_load(ft_bench *bench, const ft_bench_load_shape *shape, ft_error *err)
{
    load l = { .bench = bench, .shape = shape };
    ft_status status = draw_arrivals(&l, err);
    if (status == FT_OK)
        status = run_load(&l, err);
    if (status == FT_OK)
        status = check_answers(&l, err);
    if (status == FT_OK)
        add_row(&l);
    free(l.arrival);
    free(l.ids);
    free(l.first_token);
    free(l.between_tokens);
    return status;
}
