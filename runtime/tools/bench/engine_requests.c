/*
 * engine_requests.c - random requests to an engine, and the times of the tokens that answer them.
 *
 * Afterwards a few requests are generated alone: an engine promises the same tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/bench/engine_requests.h"

#include "runtime/base/clock.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <stdlib.h>

enum {
    IDS_KEY = 17,
    WARM_IDS_KEY = 19,
    CHECKED_REQUESTS = 4,
    CHECKED_TOKENS = 256,
    WARM_TOKENS = 8
};

static const int32_t no_ids[1] = { 0 };

/* ---- Requests ----------------------------------------------------------------------------- */

static ft_status allocate(ft_bench_requests *r, ft_error *err)
{
    r->answer = ft_calloc(r->count, sizeof *r->answer);
    r->ids = ft_calloc(r->length, sizeof *r->ids);
    r->between = ft_calloc(r->count, r->new_tokens * sizeof *r->between);
    if (r->answer == NULL || r->ids == NULL || r->between == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", r->count);
    return FT_OK;
}

ft_status ft_bench_requests_init(ft_bench_requests *r, const ft_bench *bench, size_t count,
                                 size_t length, size_t new_tokens, ft_error *err)
{
    *r = (ft_bench_requests){
        .bench = bench, .count = count, .length = length, .new_tokens = new_tokens
    };
    FT_TRY(allocate(r, err));
    size_t *lengths = ft_calloc(count, sizeof *lengths);
    if (lengths == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu requests", count);
    ft_bench_lengths(lengths, count, length, bench->fill);
    for (size_t i = 0; i < count; i++)
        r->answer[i] = (ft_bench_answer){ .requests = r, .prompt_tokens = lengths[i] };
    /* In reverse, so that long prompts do not get long answers. */
    ft_bench_lengths(lengths, count, new_tokens, bench->fill);
    for (size_t i = 0; i < count; i++)
        r->answer[i].new_tokens = lengths[count - 1 - i];
    free(lengths);
    return FT_OK;
}

void ft_bench_requests_fini(ft_bench_requests *r)
{
    free(r->answer);
    free(r->ids);
    free(r->between);
}

/* Request `index`, with random tokens in r->ids; keys have other tokens. */
static ft_request request_of(const ft_bench_requests *r, size_t index, uint64_t key)
{
    const ft_bench_answer *a = &r->answer[index];
    uint32_t vocabulary = (uint32_t) r->bench->model->config.vocabulary;
    for (size_t i = 0; i < a->prompt_tokens; i++)
        r->ids[i] = (int32_t) ft_counter_rng_below(key, (index << 24) + i, vocabulary);
    return (ft_request){ .prompt = r->ids,
                         .prompt_tokens = a->prompt_tokens,
                         .max_new_tokens = (int32_t) a->new_tokens,
                         .temperature = r->bench->top_p > 0.0 ? 1.0f : 0.0f,
                         .top_p = (float) r->bench->top_p,
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
    ft_bench_answer *a = user;
    ft_bench_requests *r = a->requests;
    double now = ft_monotonic_seconds();
    if (a->tokens == 0)
        a->first = now;
    else
        r->between[r->num_between++] = now - a->last;
    a->last = r->last = now;
    r->tokens++;
    return a->tokens++ >= CHECKED_TOKENS || hash_token(&a->hash, token);
}

/* ---- Runs --------------------------------------------------------------------------------- */

/* With other prompts, which leave nothing in the prefix cache that the requests could use. */
ft_status ft_bench_requests_warm_up(ft_bench_requests *r, ft_engine *engine, size_t sequences,
                                    ft_error *err)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < sequences; i++) {
        ft_request q = request_of(r, i % r->count, WARM_IDS_KEY);
        q.max_new_tokens = WARM_TOKENS < q.max_new_tokens ? WARM_TOKENS : q.max_new_tokens;
        q.prompt_tokens = 1 + q.prompt_tokens / 2;
        FT_TRY(ft_engine_submit(
            engine, &(ft_engine_request){ .generate = &q, .on_token = hash_token, .user = &hash },
            NULL, err));
    }
    return ft_engine_drain(engine, err);
}

ft_status ft_bench_requests_submit(ft_bench_requests *r, ft_engine *engine, size_t index,
                                   double arrival, ft_error *err)
{
    ft_bench_answer *a = &r->answer[index];
    ft_request q = request_of(r, index, IDS_KEY);
    a->arrival = arrival;
    return ft_engine_submit(
        engine, &(ft_engine_request){ .generate = &q, .on_token = take_token, .user = a }, NULL,
        err);
}

/* ---- Results ------------------------------------------------------------------------------ */

static ft_status check_alone(ft_bench_requests *r, ft_session *session, size_t index, ft_error *err)
{
    uint64_t alone = 0;
    ft_request q = request_of(r, index, IDS_KEY);
    if (q.max_new_tokens > CHECKED_TOKENS)
        q.max_new_tokens = CHECKED_TOKENS;
    FT_TRY(ft_generate(session, &q, 1, NULL, hash_token, &alone, err));
    if (alone != r->answer[index].hash)
        return ft_fail(err, FT_EDEVICE, "%s: request %zu got other tokens than alone",
                       r->bench->name, index);
    return FT_OK;
}

ft_status ft_bench_requests_check(ft_bench_requests *r, ft_error *err)
{
    ft_session *session;
    for (size_t i = 0; i < r->count; i++)
        if (r->answer[i].tokens != r->answer[i].new_tokens)
            return ft_fail(err, FT_EDEVICE, "%s: request %zu got %zu of %zu tokens", r->bench->name,
                           i, r->answer[i].tokens, r->answer[i].new_tokens);
    FT_TRY(
        ft_session_open(&session, r->bench->model,
                        &(ft_session_options){ .threads = r->bench->threads,
                                               .max_sequences = 1,
                                               .context = (int64_t) (r->length + r->new_tokens) },
                        err));
    ft_status status = FT_OK;
    for (size_t i = 0; i < CHECKED_REQUESTS && status == FT_OK; i++)
        status = check_alone(r, session, i * (r->count - 1) / (CHECKED_REQUESTS - 1), err);
    ft_session_close(session);
    return status;
}

ft_status ft_bench_requests_summarize(ft_bench_request_times *out, ft_bench_requests *r,
                                      ft_error *err)
{
    double *sample = ft_calloc(r->count, sizeof *sample);
    if (sample == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the times of %zu requests", r->count);
    for (size_t i = 0; i < r->count; i++)
        sample[i] = r->answer[i].first - r->answer[i].arrival;
    out->first = ft_bench_summarize(sample, r->count);
    for (size_t i = 0; i < r->count; i++)
        sample[i] = r->answer[i].last - r->answer[i].arrival;
    out->last = ft_bench_summarize(sample, r->count);
    out->between = ft_bench_summarize(r->between, r->num_between);
    free(sample);
    return FT_OK;
}
