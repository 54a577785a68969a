/*
 * session.h - what calibration and the tests see of a session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SESSION_H
#define FT_RUNTIME_SESSION_H

#include "runtime/model.h"
#include "runtime/passages.h"

enum { FT_INPUT_IDS, FT_INPUT_MASK, FT_INPUT_TYPES, FT_INPUTS };

/* OpenMP ends the program when it cannot start a thread: nobody may ask it for too many. */
enum { FT_MAX_THREADS = 1024 };

struct ft_session {
    const ft_model *model;
    ft_plan plan; /* the model's, laid out for the limits */
    ft_limits limits;
    ft_exec *exec;

    int64_t *input[FT_INPUTS]; /* [rows, cols], as given; NULL: not set */
    size_t rows, cols;

    ft_passages *passages; /* of a decoder's run; NULL: the model has no cache */
    int ids_value;         /* where their tokens go */
    size_t context;        /* tokens of one sequence */
    bool every_logits;

    ft_batch batch;
    int32_t *start;   /* [sequences + 1] */
    size_t *place;    /* [tokens] where a packed row came from: row * cols + column */
    int32_t *column;  /* [tokens] staging for one input */
    bool reads_first; /* the plan reads each sequence's first row */
    bool ran;
};

/*
 * ft_session_run() that hands the observe operations one set of counters per value.  A device may
 * count in memory of its own: the counters are complete after ft_session_collect().
 */
FT_MUST_USE ft_status ft_session_run_counting(ft_session *session, ft_counts *const *counts,
                                              ft_error *err);
FT_MUST_USE ft_status ft_session_collect(ft_session *session, ft_counts *const *counts,
                                         ft_error *err);

/*
 * Run what has been added to the session's passages, as the session's batch.  Results are read by
 * value: ft_session_get() has none, because the session's inputs were not what was run.
 */
FT_MUST_USE ft_status ft_session_run_passages(ft_session *session, ft_error *err);

/* Read the first `rows` rows of a value as real numbers: codes are multiplied by their scale. */
FT_MUST_USE ft_status ft_session_read_real(const ft_session *session, int value, float *out,
                                           size_t rows, ft_error *err);

#endif
