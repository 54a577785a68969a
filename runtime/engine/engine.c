/*
 * engine.c - open, drain and close an engine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEQUENCES = 64, CHUNK = 512, ENCODER_TOKENS = 4096, QUEUE = 1024, CACHE_TOKENS = 65536 };

/* ---- Options ------------------------------------------------------------------------------- */

static int64_t positions_of(const ft_model *model)
{
    return model->config.positions - model->config.position_offset;
}

static void set_cache_defaults(ft_engine_options *o, const ft_model *model)
{
    if (o->context == 0)
        o->context = positions_of(model) < 4096 ? positions_of(model) : 4096;
    int64_t context = (int64_t) ft_round_up((size_t) o->context, FT_PAGE_TOKENS);
    if (o->cache_tokens == 0)
        o->cache_tokens = context > CACHE_TOKENS                      ? context
                          : o->max_sequences < CACHE_TOKENS / context ? o->max_sequences * context
                                                                      : CACHE_TOKENS;
}

static ft_status check_options(const ft_engine_options *o, ft_error *err)
{
    if (o->threads < 0 || o->max_sequences < 0 || o->chunk < 0 || o->context < 0 ||
        o->cache_tokens < 0 || o->source_tokens < 0 || o->queue < 0 || o->batch_wait < 0)
        return ft_fail(err, FT_EARG, "options of an engine cannot be negative");
    if (o->context > INT32_MAX / 2)
        return ft_fail(err, FT_ELIMIT, "a cache has at most %d tokens", INT32_MAX);
    return FT_OK;
}

/* A pass has a row for each sequence. */
static void set_defaults(ft_engine_options *o, const ft_model *model, bool generates)
{
    o->max_sequences = o->max_sequences > 0 ? o->max_sequences : SEQUENCES;
    o->chunk = o->chunk > 0 ? o->chunk : generates ? CHUNK : ENCODER_TOKENS;
    if (o->chunk < o->max_sequences)
        o->chunk = o->max_sequences;
    o->queue = o->queue > 0 ? o->queue : QUEUE;
    if (generates)
        set_cache_defaults(o, model);
}

static ft_status open_session(ft_engine *e, const ft_model *model, ft_error *err)
{
    const ft_engine_options *o = &e->options;
    bool vision = ft_config_is_vision(&model->config);
    return ft_session_open(&e->session, model,
                           &(ft_session_options){ .size = sizeof(ft_session_options),
                                                  .threads = o->threads,
                                                  .max_tokens = vision ? 0 : o->chunk,
                                                  .max_sequences = o->max_sequences,
                                                  .context = o->context,
                                                  .cache_tokens = o->cache_tokens,
                                                  .source_tokens = o->source_tokens },
                           err);
}

static ft_status open_scheduler(ft_engine *e, ft_error *err)
{
    const ft_scheduler_options options = { .tokenizer = e->options.tokenizer,
                                           .alternates = true,
                                           .shares_prefixes = !e->options.no_prefix_cache,
                                           .on_start = ft_engine_start_sequence,
                                           .on_end = ft_engine_end_sequence,
                                           .user = e };
    FT_TRY(ft_scheduler_open(&e->scheduler, e->session, &options, err));
    ft_page_table_clear(&e->session->chunks->pages);
    return FT_OK;
}

/* ---- Thread -------------------------------------------------------------------------------- */

static bool init_lock(ft_engine *e)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool complete = pthread_mutex_init(&e->lock, NULL) == 0 &&
                    pthread_cond_init(&e->wakes, &attributes) == 0 &&
                    pthread_cond_init(&e->idle, NULL) == 0;
    pthread_condattr_destroy(&attributes);
    return complete;
}

/* Signals are for the caller's threads. */
static bool start_thread(ft_engine *e)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&e->thread, NULL, ft_engine_thread, e) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void free_engine(ft_engine *e)
{
    ft_beam_searches_close(e->searching);
    free(e->searched);
    free(e->search_requests);
    ft_scheduler_close(e->scheduler);
    ft_session_close(e->session);
    free(e);
}

static ft_status start(ft_engine *e, const ft_model *model, ft_error *err)
{
    bool generates = ft_model_generates(model);
    FT_TRY(check_options(&e->options, err));
    set_defaults(&e->options, model, generates);
    FT_TRY(open_session(e, model, err));
    if (generates)
        FT_TRY(open_scheduler(e, err));
    e->next_deadline = (double) INFINITY;
    if (e->session->chunks != NULL)
        e->stats.pages = e->stats.free_pages = e->session->limits.pages;
    if (!init_lock(e) || !start_thread(e))
        return ft_fail(err, FT_ENOMEM, "cannot start the thread of an engine");
    return FT_OK;
}

ft_status ft_engine_open(ft_engine **out, const ft_model *model, const ft_engine_options *options,
                         ft_error *err)
{
    ft_engine_options known;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(model, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_engine_options, no_prefix_cache, options, err));
    ft_engine *e = ft_calloc(1, sizeof *e);
    if (e == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for an engine");
    e->options = known;
    ft_status status = start(e, model, err);
    if (status == FT_OK)
        *out = e;
    else
        free_engine(e);
    return status;
}

static bool is_callback(const ft_engine *e)
{
    return pthread_equal(pthread_self(), e->thread);
}

static void cancel_all(ft_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->closing = e->has_cancelled = true;
    for (ft_job *job = e->first; job != NULL; job = job->next)
        job->cancelled = true;
    pthread_cond_signal(&e->wakes);
    pthread_mutex_unlock(&e->lock);
}

ft_status ft_engine_close(ft_engine *engine, ft_error *err)
{
    if (engine == NULL)
        return FT_OK;
    if (is_callback(engine))
        return ft_fail(err, FT_EARG, "a callback of an engine cannot close it");
    cancel_all(engine);
    pthread_join(engine->thread, NULL);
    pthread_mutex_destroy(&engine->lock);
    pthread_cond_destroy(&engine->wakes);
    pthread_cond_destroy(&engine->idle);
    free_engine(engine);
    return FT_OK;
}

ft_status ft_engine_drain(ft_engine *engine, ft_error *err)
{
    FT_REQUIRE(engine, err);
    if (is_callback(engine))
        return ft_fail(err, FT_EARG, "a callback of an engine cannot wait for it");
    pthread_mutex_lock(&engine->lock);
    while (engine->first != NULL)
        pthread_cond_wait(&engine->idle, &engine->lock);
    pthread_mutex_unlock(&engine->lock);
    return FT_OK;
}

ft_status ft_engine_get_stats(ft_engine *engine, ft_engine_stats *out, ft_error *err)
{
    FT_REQUIRE(engine, err);
    FT_REQUIRE(out, err);
    size_t size = out->size == 0 ? sizeof *out : out->size;
    if (size < sizeof size || size > FT_OPTIONS_SIZE_MAX)
        return ft_fail(err, FT_EARG, "ft_engine_stats: size is %zu, expected 0 or %zu", size,
                       sizeof *out);
    pthread_mutex_lock(&engine->lock);
    ft_engine_stats stats = engine->stats;
    stats.queued = engine->num_jobs - stats.running;
    pthread_mutex_unlock(&engine->lock);
    memset(out, 0, size);
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    out->size = size;
    return FT_OK;
}
