/*
 * engine_end.c - the end of a job, and statistics.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

void ft_engine_count_start(ft_engine *e, ft_job *job)
{
    pthread_mutex_lock(&e->lock);
    job->runs = true;
    e->stats.running++;
    pthread_mutex_unlock(&e->lock);
}

/* The caller holds the lock. */
static void count_tokens(ft_engine *e)
{
    ft_engine_stats *s = &e->stats;
    ft_scheduler_stats of = { .reused_tokens = 0 };
    if (e->scheduler != NULL)
        of = *ft_scheduler_get_stats(e->scheduler);
    s->prompt_tokens = of.passes.prompt_tokens + e->other.prompt_tokens;
    s->decode_tokens = of.passes.decode_tokens + e->other.decode_tokens;
    s->prefix_tokens = of.reused_tokens;
    if (e->session->chunks != NULL)
        s->free_pages = ft_page_table_available(&e->session->chunks->pages);
}

void ft_engine_count_pass(ft_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stats.passes++;
    count_tokens(e);
    pthread_mutex_unlock(&e->lock);
}

static void count_end(ft_engine_stats *stats, const ft_job *job, ft_status status)
{
    stats->running -= job->runs;
    stats->finished += status == FT_OK;
    stats->cancelled += status == FT_ECANCELLED;
    stats->timed_out += status == FT_ETIMEOUT;
    stats->failed += status != FT_OK && status != FT_ECANCELLED && status != FT_ETIMEOUT;
}

static void remove_job(ft_engine *e, ft_job *job)
{
    *(job->previous == NULL ? &e->first : &job->previous->next) = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    if (--e->num_jobs == 0)
        pthread_cond_broadcast(&e->idle);
}

/* The callback comes first, so that whoever drains the engine returns after all callbacks. */
void ft_engine_end_job(ft_engine *e, ft_job *job, ft_status status, const ft_error *failure)
{
    const ft_engine_request *r = &job->callbacks;
    if (r->on_end != NULL)
        r->on_end(r->user, job->id, status, status == FT_OK ? NULL : failure);
    pthread_mutex_lock(&e->lock);
    count_end(&e->stats, job, status);
    count_tokens(e);
    remove_job(e, job);
    pthread_mutex_unlock(&e->lock);
    ft_job_free(job);
}
