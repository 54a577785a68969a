/*
 * engine_private.h - the state of an engine, and the parts of its thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_ENGINE_ENGINE_PRIVATE_H
#define FT_RUNTIME_ENGINE_ENGINE_PRIVATE_H

#include "runtime/engine/job.h"
#include "runtime/generate/beam_search.h"
#include "runtime/generate/scheduler.h"

#include <pthread.h>

struct ft_engine {
    ft_session *session;
    ft_engine_options options; /* with defaults filled in */
    pthread_t thread;

    /* The lock protects what follows.  No callback is called while it is held. */
    pthread_mutex_t lock;
    pthread_cond_t wakes; /* the thread: something has been submitted or cancelled */
    pthread_cond_t idle;  /* who drains: no job is left */
    ft_job *first;        /* all jobs, newest first */
    size_t num_jobs;
    ft_sequence_list incoming; /* jobs that the thread has not seen */
    uint64_t last_id;
    bool closing, has_cancelled; /* a job of the list is cancelled */
    ft_error failure;            /* of the device; code FT_OK: none */
    ft_engine_stats stats;

    /* The thread alone. */
    ft_scheduler *scheduler;      /* NULL: the model does not generate */
    ft_sequence_list generations; /* wait for the searches before them */
    ft_sequence_list searches, encodings;
    ft_beam_searches *searching; /* NULL: no search runs */
    ft_job **searched;           /* [num_searched]: its jobs; NULL: ended */
    ft_request *search_requests; /* [num_searched] */
    size_t num_searched;
    bool generations_first;  /* searches have just run */
    double next_deadline;    /* not later than that of any job */
    ft_generate_stats other; /* of searches and encoders */
};

/* A job runs from now on. */
void ft_engine_count_start(ft_engine *engine, ft_job *job);

/* Count what the passes so far have computed. */
void ft_engine_count_pass(ft_engine *engine);

/* End a job: report it and free it.  `failure` may be NULL with FT_OK. */
void ft_engine_end_job(ft_engine *engine, ft_job *job, ft_status status, const ft_error *failure);

/* ft_scheduler_options.on_start and on_end: `user` is the engine. */
void ft_engine_start_sequence(void *user, ft_sequence *sequence);
void ft_engine_end_sequence(void *user, ft_sequence *sequence, const ft_error *failure);

/* The main function of the thread. */
void *ft_engine_thread(void *engine);

/* ---- Beam searches ------------------------------------------------------------------------- */

/* Begin the first searches that wait, those with equal options. */
void ft_engine_begin_searches(ft_engine *engine);

/* Go on with them, or end them when all are finished. */
FT_MUST_USE ft_status ft_engine_step_searches(ft_engine *engine, ft_error *err);

/* Stop a search that runs, without ending its job. */
void ft_engine_cancel_search(ft_engine *engine, const ft_job *job);

/* ---- Encoders ------------------------------------------------------------------------------ */

/* Whether no more rows fit into the next batch. */
bool ft_engine_batch_is_full(const ft_engine *engine);

/* Run a batch of the first jobs that wait, at least one, and end them. */
FT_MUST_USE ft_status ft_engine_run_batch(ft_engine *engine, ft_error *err);

#endif
