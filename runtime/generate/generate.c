/*
 * generate.c - generation for requests that are all known: the scheduler runs until none is left.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"

#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/generate/kept_cache.h"
#include "runtime/generate/scheduler.h"
#include "runtime/mem.h"

#include <stdlib.h>

const char *ft_finish_reason_name(ft_finish_reason reason)
{
    static const char *const names[] = {
        [FT_FINISH_NONE] = "none",
        [FT_FINISH_STOP_ID] = "stop_id",
        [FT_FINISH_STOP_STRING] = "stop_string",
        [FT_FINISH_LENGTH] = "length",
        [FT_FINISH_CANCELLED] = "cancelled",
        [FT_FINISH_FAILED] = "failed",
    };
    return (size_t) reason < FT_COUNT(names) ? names[reason] : "unknown";
}

typedef struct generation {
    ft_session *session;
    ft_scheduler *scheduler;
    ft_sequence *sequence; /* [count] */
    size_t count;
    bool keeps_cache;
    ft_on_token on_token;
    void *user;
    ft_error failure; /* of the first sequence that failed; code FT_OK: none */
} generation;

static bool keep_token(void *user, const ft_token *token)
{
    const generation *g = user;
    ft_kept_cache_add(g->session, token->id);
    return g->on_token(g->user, token);
}

static void end_sequence(void *user, ft_sequence *sequence, const ft_error *failure)
{
    generation *g = user;
    if (g->keeps_cache)
        ft_kept_cache_end(g->session, sequence->prefilled);
    if (failure != NULL && g->failure.code == FT_OK)
        g->failure = *failure;
}

static ft_status open_scheduler(generation *g, const ft_generate_options *options, ft_error *err)
{
    const ft_scheduler_options scheduler = { .chunk = (size_t) options->chunk,
                                             .tokenizer = options->tokenizer,
                                             .keeps_pages = g->keeps_cache,
                                             .on_end = end_sequence,
                                             .user = g };
    FT_TRY(ft_scheduler_open(&g->scheduler, g->session, &scheduler, err));
    return options->chunk < 0 ? ft_fail(err, FT_EARG, "a chunk cannot be negative") : FT_OK;
}

static ft_status check_requests(generation *g, const ft_request *requests, ft_error *err)
{
    g->sequence = ft_calloc(g->count, sizeof *g->sequence);
    if (g->sequence == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to generate");
    for (size_t i = 0; i < g->count; i++) {
        g->sequence[i] = (ft_sequence){ .request = requests[i],
                                        .index = i,
                                        .on_token = g->keeps_cache ? keep_token : g->on_token,
                                        .user = g->keeps_cache ? g : g->user };
        FT_TRY(ft_scheduler_check(g->scheduler, &g->sequence[i], err));
    }
    return FT_OK;
}

/* Empty the KV cache, but for what the only request has in common with the last. */
static ft_status begin_cache(generation *g, ft_error *err)
{
    ft_chunk_batch *chunks = g->session->chunks;
    ft_sequence *only = g->sequence;
    if (g->keeps_cache)
        FT_TRY(ft_kept_cache_begin(g->session, &only->request, g->count, &only->prefilled, err));
    if (!g->keeps_cache || only->prefilled == 0)
        ft_page_table_clear(&chunks->pages);
    if (g->session->limits.cross_kv > 0)
        ft_page_table_clear(&chunks->sources);
    return FT_OK;
}

static ft_status run(generation *g, const ft_request *requests, const ft_generate_options *options,
                     ft_error *err)
{
    FT_TRY(open_scheduler(g, options, err));
    FT_TRY(check_requests(g, requests, err));
    FT_TRY(begin_cache(g, err));
    for (size_t i = 0; i < g->count; i++)
        ft_scheduler_add(g->scheduler, &g->sequence[i]);
    while (!ft_scheduler_is_idle(g->scheduler))
        FT_TRY(ft_scheduler_step(g->scheduler, err));
    if (g->failure.code != FT_OK && err != NULL)
        *err = g->failure;
    return g->failure.code;
}

ft_status ft_generate(ft_session *session, const ft_request *requests, size_t count,
                      const ft_generate_options *options, ft_on_token on_token, void *user,
                      ft_error *err)
{
    ft_generate_options known;
    FT_REQUIRE(session, err);
    FT_REQUIRE_ARRAY(requests, count, err);
    FT_REQUIRE(on_token, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_generate_options, stats, options, err));
    generation g = { .session = session,
                     .count = count,
                     .keeps_cache = known.keep_cache,
                     .on_token = on_token,
                     .user = user };
    ft_status status = run(&g, requests, &known, err);
    if (known.stats != NULL)
        *known.stats = g.scheduler != NULL ? ft_scheduler_get_stats(g.scheduler)->passes
                                           : (ft_generate_stats){ .prompt_tokens = 0 };
    ft_scheduler_close(g.scheduler);
    free(g.sequence);
    return status;
}
