/*
 * submit.c - requests come in from any thread, and are cancelled from any.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

#include "runtime/base/clock.h"
#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/generate/requests.h"

#include <inttypes.h>
#include <math.h>

static ft_status check_search(const ft_engine *e, const ft_job *job, ft_error *err)
{
    ft_beam_search_config config;
    FT_TRY(ft_beam_search_configure(&config, e->session, &job->beams, err));
    return ft_beam_search_check(&config, &job->sequence.request, 1, err);
}

/* Everything that this reads of the engine stays as it was when the engine was opened. */
static ft_status check(const ft_engine *e, ft_job *job, ft_error *err)
{
    const ft_model *model = e->session->model;
    if (job->kind == FT_JOB_ENCODING && e->scheduler != NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: generates text, and takes no `inputs`",
                       model->path);
    if (job->kind == FT_JOB_ENCODING)
        return ft_job_check_inputs(job, e->session, err);
    FT_TRY(ft_request_check_model(model, err));
    return job->kind == FT_JOB_SEARCH ? check_search(e, job, err)
                                      : ft_scheduler_check(e->scheduler, &job->sequence, err);
}

static void set_times(ft_job *job)
{
    double timeout = job->callbacks.timeout;
    job->submitted = ft_monotonic_seconds();
    job->deadline = timeout > 0.0 ? job->submitted + timeout : (double) INFINITY;
}

/* The caller holds the lock. */
static ft_status accept(ft_engine *e, ft_job *job, ft_error *err)
{
    size_t queued = e->num_jobs - (size_t) e->stats.running;
    if (e->failure.code != FT_OK)
        return ft_fail(err, e->failure.code, "%s", e->failure.text);
    if (e->closing)
        return ft_fail(err, FT_ECANCELLED, "the engine is being closed");
    if (queued >= (size_t) e->options.queue)
        return ft_fail(err, FT_ELIMIT, "%zu requests wait, and the queue has room for %" PRId64,
                       queued, e->options.queue);
    job->id = ++e->last_id;
    job->sequence.index = (size_t) job->id;
    job->sequence.on_token = job->callbacks.on_token;
    job->sequence.user = job->callbacks.user;
    job->next = e->first;
    if (e->first != NULL)
        e->first->previous = job;
    e->first = job;
    e->num_jobs++;
    ft_sequence_list_append(&e->incoming, &job->sequence);
    return FT_OK;
}

/* The job may have ended before this returns. */
static ft_status enqueue(ft_engine *e, ft_job *job, uint64_t *id, ft_error *err)
{
    pthread_mutex_lock(&e->lock);
    ft_status status = accept(e, job, err);
    if (status == FT_OK && id != NULL)
        *id = job->id;
    pthread_cond_signal(&e->wakes);
    pthread_mutex_unlock(&e->lock);
    return status;
}

ft_status ft_engine_submit(ft_engine *engine, const ft_engine_request *request, uint64_t *id,
                           ft_error *err)
{
    ft_engine_request known;
    ft_job *job;
    FT_REQUIRE(engine, err);
    FT_REQUIRE(request, err);
    FT_TRY(FT_READ_OPTIONS(&known, ft_engine_request, user, request, err));
    FT_TRY(ft_job_new(&job, &known, err));
    set_times(job);
    ft_status status = check(engine, job, err);
    if (status == FT_OK)
        status = enqueue(engine, job, id, err);
    if (status != FT_OK)
        ft_job_free(job);
    return status;
}

void ft_engine_cancel(ft_engine *e, uint64_t id)
{
    if (e == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    for (ft_job *job = e->first; job != NULL; job = job->next)
        if (job->id == id)
            job->cancelled = e->has_cancelled = true;
    pthread_cond_signal(&e->wakes);
    pthread_mutex_unlock(&e->lock);
}
