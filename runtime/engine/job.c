/*
 * job.c - copy a request.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/engine/job.h"

#include "runtime/base/read_options.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static ft_status no_memory(ft_error *err)
{
    return ft_fail(err, FT_ENOMEM, "no memory for a request");
}

/* A copy of an array, or NULL for none. */
static ft_status copy_ids(const int32_t **ids, size_t count, ft_error *err)
{
    if (*ids == NULL)
        return FT_OK;
    int32_t *copy = ft_calloc(count, sizeof *copy);
    if (copy == NULL)
        return no_memory(err);
    memcpy(copy, *ids, count * sizeof *copy);
    *ids = copy;
    return FT_OK;
}

/* The caller's arrays are not the job's, so they are forgotten before the first may fail. */
static ft_status copy_generation(ft_job *job, const ft_request *from, ft_error *err)
{
    ft_request *to = &job->sequence.request;
    char **strings = NULL;
    *to = *from;
    to->prompt = to->source = to->stop_ids = NULL;
    to->stop_strings = NULL;
    if ((from->prompt == NULL && from->prompt_tokens > 0) ||
        (from->source == NULL && from->source_tokens > 0))
        return ft_fail(err, FT_EARG, "a prompt or source is NULL, but has tokens");
    job->default_prompt = from->prompt_tokens == 0;
    const int32_t *prompt = job->default_prompt ? NULL : from->prompt, *source = from->source,
                  *stops = from->stop_ids;
    FT_TRY(copy_ids(&prompt, from->prompt_tokens, err));
    to->prompt = prompt;
    FT_TRY(copy_ids(&source, from->source_tokens, err));
    to->source = source;
    FT_TRY(copy_ids(&stops, from->stops, err));
    to->stop_ids = stops;
    ft_status status = ft_job_copy_strings(&strings, from->stop_strings, err);
    to->stop_strings = (const char *const *) strings;
    return status;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status check_form(const ft_engine_request *r, ft_error *err)
{
    bool encodes = r->inputs != NULL;
    if ((r->generate != NULL) == encodes || (r->beams != NULL && r->generate == NULL))
        return ft_fail(err, FT_EARG,
                       "a request has either `generate`, with or without `beams`, or `inputs`");
    if (encodes            ? r->on_outputs == NULL
        : r->beams != NULL ? r->on_hypothesis == NULL
                           : r->on_token == NULL)
        return ft_fail(err, FT_EARG, "a request has no callback for its result");
    if (!(r->timeout >= 0.0))
        return ft_fail(err, FT_EARG, "timeout is %g, expected seconds from 0 on", r->timeout);
    return FT_OK;
}

static ft_status copy(ft_job *job, const ft_engine_request *from, ft_error *err)
{
    if (job->kind == FT_JOB_ENCODING)
        return ft_job_copy_inputs(job, from, err);
    if (job->kind == FT_JOB_SEARCH) {
        FT_TRY(FT_READ_OPTIONS(&job->beams, ft_beam_search_options, stats, from->beams, err));
        if (job->beams.stats != NULL)
            return ft_fail(err, FT_EARG, "beams: stats is not NULL, but an engine counts itself");
        if (job->beams.forced_bos != NULL) {
            job->forced_bos = *job->beams.forced_bos;
            job->beams.forced_bos = &job->forced_bos;
        }
    }
    return copy_generation(job, from->generate, err);
}

ft_status ft_job_new(ft_job **out, const ft_engine_request *request, ft_error *err)
{
    *out = NULL;
    FT_TRY(check_form(request, err));
    ft_job *job = ft_calloc(1, sizeof *job);
    if (job == NULL)
        return no_memory(err);
    job->kind = request->inputs != NULL  ? FT_JOB_ENCODING
                : request->beams != NULL ? FT_JOB_SEARCH
                                         : FT_JOB_GENERATION;
    job->callbacks = *request;
    job->sequence.priority = request->priority;
    ft_status status = copy(job, request, err);
    if (status != FT_OK) {
        ft_job_free(job);
        return status;
    }
    *out = job;
    return FT_OK;
}

static void free_strings(char **strings)
{
    for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
        free(strings[i]);
    free(strings);
}

void ft_job_free(ft_job *job)
{
    if (job == NULL)
        return;
    const ft_request *r = &job->sequence.request;
    if (!job->default_prompt)
        free((int32_t *) (uintptr_t) r->prompt);
    free((int32_t *) (uintptr_t) r->source);
    free((int32_t *) (uintptr_t) r->stop_ids);
    free_strings((char **) (uintptr_t) r->stop_strings);
    free_strings(job->outputs);
    for (int i = 0; i < FT_NUM_INPUTS; i++)
        free(job->inputs.value[i]);
    free(job->inputs.pixels);
    free(job);
}
