/*
 * session.h - what calibration and the tests see of a session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_SESSION_H
#define FT_RUNTIME_MODEL_SESSION_H

#include "runtime/model/model.h"
#include "runtime/model/padded_batch.h"
#include "runtime/model/prefill_chunks.h"

/* As many as a thread pool has. */
enum { FT_MAX_THREADS = 1024 };

enum { FT_TEXT, FT_SOURCE = FT_TEXT, FT_TARGET, FT_TEXTS };

struct ft_session {
    const ft_model *model;
    ft_plan plan; /* the model's, laid out for the limits */
    ft_limits limits;
    ft_exec *exec;

    /* What callers set: the text, of an encoder-decoder its source and the target. */
    ft_padded text[FT_TEXTS];
    int texts;
    int ids_value[FT_TEXTS]; /* where their tokens go */
    int positions_value;     /* of text[0]; -1: nobody asks for them */
    int pixels_value;        /* where images go, whose rows text[0] then counts; -1: reads none */

    ft_passages *passages; /* of a decoder's run; NULL: the model has no cache */
    size_t context;        /* tokens of one sequence */
    bool every_logits;

    ft_batch batch, source_batch; /* of the last run; of the one before that read the sources */
    int32_t *column;              /* [tokens] staging for one input */
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
 * Run what has been added to the session's passages, as the session's batch: sources, or tokens of
 * texts.  Results are read by value: ft_session_get() has none, because the session's inputs were
 * not what was run.
 */
FT_MUST_USE ft_status ft_session_run_passages(ft_session *session, ft_error *err);

/* ft_session_get() for a part of the caller's rows: the first of the run's is number `first`. */
FT_MUST_USE ft_status ft_session_get_from(const ft_session *session, const char *name, size_t first,
                                          ft_tensor *out, ft_error *err);

/* Whether a value has rows of sources, where texts have some, not of the texts themselves. */
bool ft_session_has_source_rows(const ft_session *session, int value);

/* Read the first `rows` rows of a value as real numbers: codes are multiplied by their scale. */
FT_MUST_USE ft_status ft_session_read_real(const ft_session *session, int value, float *out,
                                           size_t rows, ft_error *err);

#endif
