/*
 * engine_thread.c - the thread of an engine: one forward pass after the other, and sleep.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

#include "runtime/base/clock.h"
#include "runtime/error.h"

#include <math.h>
#include <time.h>

/* Where a job waits until it starts. */
static ft_sequence_list *waiting_list(ft_engine *e, const ft_job *job)
{
    switch (job->kind) {
    case FT_JOB_GENERATION:
        return &e->generations;
    case FT_JOB_SEARCH:
        return &e->searches;
    case FT_JOB_ENCODING:
        break;
    }
    return &e->encodings;
}

/* Sort what has been submitted into the lists of the thread. */
static void receive(ft_engine *e)
{
    while (e->incoming.first != NULL) {
        ft_job *job = ft_job_of(e->incoming.first);
        ft_sequence_list_remove(&e->incoming, &job->sequence);
        e->next_deadline = fmin(e->next_deadline, job->deadline);
        ft_sequence_list_insert(waiting_list(e, job), &job->sequence);
    }
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static void end_early(ft_engine *e, ft_job *job, ft_status status)
{
    ft_error failure;
    if (status == FT_ETIMEOUT)
        (void) ft_fail(&failure, status, "the request did not end within its timeout of %g seconds",
                       job->callbacks.timeout);
    else
        (void) ft_fail(&failure, status, "the request was cancelled");
    ft_engine_end_job(e, job, status, &failure);
}

void ft_engine_start_sequence(void *user, ft_sequence *sequence)
{
    ft_engine_count_start(user, ft_job_of(sequence));
}

/* A sequence of the scheduler has ended. */
void ft_engine_end_sequence(void *user, ft_sequence *sequence, const ft_error *failure)
{
    ft_engine *e = user;
    ft_job *job = ft_job_of(sequence);
    if (failure != NULL)
        ft_engine_end_job(e, job, failure->code, failure);
    else if (sequence->reason == FT_FINISH_CANCELLED)
        end_early(e, job, job->late ? FT_ETIMEOUT : FT_ECANCELLED);
    else
        ft_engine_end_job(e, job, FT_OK, NULL);
}

/* Take a job out of whatever it waits for or runs in. */
static void end_now(ft_engine *e, ft_job *job)
{
    if (job->kind == FT_JOB_GENERATION && job->started) {
        ft_scheduler_cancel(e->scheduler, &job->sequence);
        return;
    }
    if (job->started)
        ft_engine_cancel_search(e, job);
    else
        ft_sequence_list_remove(waiting_list(e, job), &job->sequence);
    end_early(e, job, job->late ? FT_ETIMEOUT : FT_ECANCELLED);
}

/* The next job that is cancelled or late, or NULL; later calls need not look before `deadline`. */
static ft_job *next_to_end(ft_engine *e, double now)
{
    ft_job *found = NULL;
    pthread_mutex_lock(&e->lock);
    receive(e);
    if (e->has_cancelled || now >= e->next_deadline) {
        double deadline = (double) INFINITY;
        for (found = e->first; found != NULL; found = found->next) {
            found->late = now >= found->deadline && !found->cancelled;
            if (found->cancelled || found->late)
                break;
            deadline = fmin(deadline, found->deadline);
        }
        if (found == NULL) {
            e->has_cancelled = false;
            e->next_deadline = deadline;
        }
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

/* The device failed: all jobs end with its error. */
static void fail_all(ft_engine *e, const ft_error *failure)
{
    pthread_mutex_lock(&e->lock);
    e->failure = *failure;
    e->incoming = (ft_sequence_list){ .first = NULL };
    ft_job *job = e->first;
    pthread_mutex_unlock(&e->lock);
    while (job != NULL) {
        ft_engine_end_job(e, job, failure->code, failure);
        pthread_mutex_lock(&e->lock);
        job = e->first;
        pthread_mutex_unlock(&e->lock);
    }
}

/* ---- Turns --------------------------------------------------------------------------------- */

static void begin_generations(ft_engine *e)
{
    while (e->generations.first != NULL) {
        ft_sequence *sequence = e->generations.first;
        ft_sequence_list_remove(&e->generations, sequence);
        ft_job_of(sequence)->started = true;
        ft_scheduler_add(e->scheduler, sequence);
    }
}

/*
 * Generation and searches use the session in turn: where searches wait, no more generation begins,
 * and when they have ended, what has come meanwhile is first.
 */
static ft_status run_decoder(ft_engine *e, ft_error *err)
{
    if (e->searching != NULL)
        return ft_engine_step_searches(e, err);
    if (e->searches.first == NULL || e->generations_first)
        begin_generations(e);
    e->generations_first = false;
    if (!ft_scheduler_is_idle(e->scheduler))
        return ft_scheduler_step(e->scheduler, err);
    if (e->searches.first == NULL)
        return FT_OK;
    e->generations_first = true;
    ft_engine_begin_searches(e);
    return FT_OK;
}

/* When the next batch of an encoder begins. */
static double batch_time(const ft_engine *e)
{
    if (e->encodings.first == NULL)
        return (double) INFINITY;
    double wait = 1e-6 * (double) e->options.batch_wait;
    return wait == 0.0 || ft_engine_batch_is_full(e)
               ? 0.0
               : ft_job_of(e->encodings.first)->submitted + wait;
}

static bool has_decoding(const ft_engine *e)
{
    return e->searching != NULL || e->searches.first != NULL || e->generations.first != NULL ||
           (e->scheduler != NULL && !ft_scheduler_is_idle(e->scheduler));
}

static ft_status run_pass(ft_engine *e, ft_error *err)
{
    FT_TRY(e->encodings.first != NULL ? ft_engine_run_batch(e, err) : run_decoder(e, err));
    ft_engine_count_pass(e);
    return FT_OK;
}

/* ---- Sleep --------------------------------------------------------------------------------- */

static void sleep_until(ft_engine *e, double time)
{
    if (isinf(time)) {
        pthread_cond_wait(&e->wakes, &e->lock);
        return;
    }
    double seconds = floor(time);
    const struct timespec until = { .tv_sec = (time_t) seconds,
                                    .tv_nsec = (long) (1e9 * (time - seconds)) };
    pthread_cond_timedwait(&e->wakes, &e->lock, &until);
}

/* Sleep until there is something to do; false: the engine closes and no job is left. */
static bool wait_for_work(ft_engine *e)
{
    bool goes_on = true;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        receive(e);
        double now = ft_monotonic_seconds(), batch = batch_time(e);
        goes_on = !e->closing || e->first != NULL;
        if (!goes_on || e->has_cancelled || has_decoding(e) || now >= batch ||
            now >= e->next_deadline)
            break;
        sleep_until(e, fmin(batch, e->next_deadline));
    }
    pthread_mutex_unlock(&e->lock);
    return goes_on;
}

void *ft_engine_thread(void *engine)
{
    ft_engine *e = engine;
    ft_error failure;
    while (wait_for_work(e)) {
        double now = ft_monotonic_seconds();
        for (ft_job *job; (job = next_to_end(e, now)) != NULL;)
            end_now(e, job);
        if ((has_decoding(e) || now >= batch_time(e)) && run_pass(e, &failure) != FT_OK) {
            fail_all(e, &failure);
            return NULL;
        }
    }
    return NULL;
}
