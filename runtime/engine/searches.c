/*
 * searches.c - beam searches of an engine: those that wait with equal options run together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/engine_private.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

static bool same_options(const ft_beam_search_options *a, const ft_beam_search_options *b)
{
    return a->beams == b->beams && a->n_best == b->n_best &&
           a->length_penalty == b->length_penalty &&
           a->no_length_normalization == b->no_length_normalization &&
           a->early_stopping == b->early_stopping && a->beam_groups == b->beam_groups &&
           a->diversity_penalty == b->diversity_penalty && a->poll_every == b->poll_every &&
           (a->forced_bos == NULL) == (b->forced_bos == NULL) &&
           (a->forced_bos == NULL || *a->forced_bos == *b->forced_bos);
}

static void end_search(ft_engine *e, size_t index, ft_status status, const ft_error *failure)
{
    ft_job *job = e->searched[index];
    e->searched[index] = NULL;
    ft_engine_end_job(e, job, status, failure);
}

static bool report(void *user, const ft_hypothesis *found)
{
    ft_engine *e = user;
    ft_hypothesis hypothesis = *found;
    ft_job *job = e->searched[found->request];
    if (job == NULL || job->search_stopped)
        return true;
    hypothesis.request = (size_t) job->id;
    job->search_stopped = !job->callbacks.on_hypothesis(job->callbacks.user, &hypothesis);
    if (found->reason == FT_FINISH_FAILED) {
        ft_error failure;
        (void) ft_fail(&failure, FT_ENONFINITE, "prompt %zu: a logit is not finite",
                       hypothesis.request);
        end_search(e, found->request, FT_ENONFINITE, &failure);
    } else if (job->search_stopped) {
        end_search(e, found->request, FT_ECANCELLED, NULL);
    } else if (found->rank + 1 == found->count) {
        end_search(e, found->request, FT_OK, NULL);
    }
    return true;
}

/* Take the first searches that wait and have the options of the first. */
static size_t take(ft_engine *e, ft_job **jobs, ft_request *requests, size_t most)
{
    const ft_beam_search_options *options = &ft_job_of(e->searches.first)->beams;
    size_t count = 0;
    for (ft_sequence *next, *q = e->searches.first; q != NULL && count < most; q = next) {
        ft_job *job = ft_job_of(q);
        next = q->next;
        if (!same_options(&job->beams, options))
            continue;
        ft_sequence_list_remove(&e->searches, q);
        job->started = true;
        ft_engine_count_start(e, job);
        jobs[count] = job;
        requests[count++] = q->request;
    }
    return count;
}

static void forget_searches(ft_engine *e)
{
    ft_beam_searches_close(e->searching);
    free(e->searched);
    free(e->search_requests);
    e->searching = NULL;
    e->searched = NULL;
    e->search_requests = NULL;
    e->num_searched = 0;
}

static ft_status begin(ft_engine *e, ft_error *err)
{
    const ft_beam_search_options options = ft_job_of(e->searches.first)->beams;
    ft_beam_search_config config;
    FT_TRY(ft_beam_search_configure(&config, e->session, &options, err));
    size_t most = ft_beam_search_max_sources(&config);
    e->searched = ft_calloc(most, sizeof *e->searched);
    e->search_requests = ft_calloc(most, sizeof *e->search_requests);
    if (e->searched == NULL || e->search_requests == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu searches", most);
    e->num_searched = take(e, e->searched, e->search_requests, most);
    return ft_beam_searches_open(&e->searching, e->session, e->search_requests, e->num_searched,
                                 &e->searched[0]->beams, report, e, err);
}

/* Searches that cannot begin fail alone: those that have been taken, or else the first. */
void ft_engine_begin_searches(ft_engine *e)
{
    ft_error failure;
    if (begin(e, &failure) == FT_OK)
        return;
    for (size_t i = 0; i < e->num_searched; i++)
        end_search(e, i, failure.code, &failure);
    if (e->num_searched == 0) {
        ft_job *job = ft_job_of(e->searches.first);
        ft_sequence_list_remove(&e->searches, &job->sequence);
        ft_engine_end_job(e, job, failure.code, &failure);
    }
    forget_searches(e);
}

static void end_searches(ft_engine *e)
{
    e->other.prompt_tokens += ft_beam_searches_stats(e->searching)->prompt_tokens;
    e->other.decode_tokens += ft_beam_searches_stats(e->searching)->decode_tokens;
    forget_searches(e);
}

ft_status ft_engine_step_searches(ft_engine *e, ft_error *err)
{
    bool done;
    FT_TRY(ft_beam_searches_step(e->searching, &done, err));
    if (done)
        end_searches(e);
    return FT_OK;
}

void ft_engine_cancel_search(ft_engine *e, const ft_job *job)
{
    for (size_t i = 0; i < e->num_searched; i++)
        if (e->searched[i] == job) {
            ft_beam_searches_cancel(e->searching, i);
            e->searched[i] = NULL;
        }
}
