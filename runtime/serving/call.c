/*
 * call.c - a call from its jobs to its end.
 *
 * Whoever brings `running` to zero responds and ends the call: the engine's thread with the end of
 * the last job, or the thread that submits if all jobs have ended before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/serving/serving.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <time.h>

enum { SWEEP_NS = 10000000 };

uint64_t ft_serving_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* ---- The end ------------------------------------------------------------------------------- */

void ft_serving_call_fini(ft_serving_call *call)
{
    for (int i = 0; i < FT_IN_COUNT; i++)
        free(call->input[i].data);
    for (size_t i = 0; i < call->rows; i++)
        free(call->row[i].data);
    json_decref(call->values);
    free(call->text.data);
    free(call->ids.data);
    free(call->logprobs.data);
    free(call->said.data);
    free(call->row);
    free(call->job);
}

/* The sequence ends first, so that the client can go on with it as soon as it has the response. */
static void end(ft_serving_call *call)
{
    ft_serving_sequence_end(call);
    if (call->failure.code == FT_OK)
        (void) call->respond(call, &call->failure);
    call->server->end(call);
}

static void unlist(ft_serving_call *call)
{
    *(call->previous == NULL ? &call->instance->first : &call->previous->next) = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
}

void ft_serving_call_leave(ft_serving_call *call, ft_status status, const ft_error *failure)
{
    ft_serving_instance *instance = call->instance;
    pthread_mutex_lock(&instance->lock);
    if (status != FT_OK && call->failure.code == FT_OK)
        call->failure = *failure;
    bool last = --call->running == 0;
    if (last && call->rows > 0)
        unlist(call);
    pthread_mutex_unlock(&instance->lock);
    if (last)
        end(call);
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

ft_status ft_serving_call_set_rows(ft_serving_call *call, size_t rows, ft_error *err)
{
    ft_serving_instance *instance = call->instance;
    call->job = ft_calloc(rows, sizeof *call->job);
    call->row = ft_calloc(rows, sizeof *call->row);
    if (call->job == NULL || call->row == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu rows", rows);
    call->rows = rows;
    pthread_mutex_lock(&instance->lock);
    call->next = instance->first;
    if (call->next != NULL)
        call->next->previous = call;
    instance->first = call;
    pthread_mutex_unlock(&instance->lock);
    return FT_OK;
}

ft_status ft_serving_call_submit(ft_serving_call *call, ft_engine_request *request, size_t row,
                                 ft_error *err)
{
    request->timeout = call->timeout;
    request->priority = call->settings.priority;
    if (row == 0)
        call->submitted = ft_serving_now();
    pthread_mutex_lock(&call->instance->lock);
    call->running++;
    ft_status status = ft_engine_submit(call->instance->engine, request, &call->job[row], err);
    call->running -= status != FT_OK;
    pthread_mutex_unlock(&call->instance->lock);
    return status;
}

void ft_serving_sweep(ft_serving_instance *instance)
{
    uint64_t now = ft_serving_now();
    pthread_mutex_lock(&instance->lock);
    bool due = now - instance->swept >= SWEEP_NS;
    if (due)
        instance->swept = now;
    for (ft_serving_call *call = due ? instance->first : NULL; call != NULL; call = call->next)
        for (size_t i = 0; i < call->rows && (i > 0 || call->server->is_cancelled(call)); i++)
            ft_engine_cancel(instance->engine, call->job[i]);
    pthread_mutex_unlock(&instance->lock);
}
