/*
 * sample_runner.h - forward passes of one model over samples, several at a time, that stop behind
 * the last value to be read.
 *
 * With an activation checkpoint they also resume where an earlier runner stopped, and leave their
 * own live values for later ones.  An encoder-decoder always runs as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_STATS_SAMPLE_RUNNER_H
#define FT_CALIBRATE_STATS_SAMPLE_RUNNER_H

#include "runtime/data/dataset.h"
#include "runtime/model/activation_checkpoint.h"

typedef struct ft_sample_runner_options {
    const ft_model *model;
    const ft_dataset *data;
    const char *const *name; /* [count] values that are read, in the order of the plan; borrowed */
    size_t count;
    size_t sessions;                      /* samples that run at a time */
    size_t longest;                       /* tokens of the longest sample */
    ft_activation_checkpoint *checkpoint; /* NULL: none */
    size_t memory; /* on the CPU, saved values take a quarter of it at most; 0: no limit */
} ft_sample_runner_options;

typedef struct ft_sample_runner {
    ft_sample_runner_options options;
    ft_session **session; /* [sessions] */
    int *value;           /* [count]: in the plan */
    int cut, end;         /* where samples will resume next time, and where they stop */
} ft_sample_runner;

/* Errors of ft_session_open(); FT_ENOMEM.  close also accepts a zeroed or failed one. */
FT_MUST_USE ft_status ft_sample_runner_open(ft_sample_runner *runner,
                                            const ft_sample_runner_options *options, ft_error *err);
void ft_sample_runner_close(ft_sample_runner *runner);

/*
 * Run a row of the data in a session; its checkpoint has the number `sample`.  Sessions may run at
 * the same time.  Errors of the forward pass.
 */
FT_MUST_USE ft_status ft_sample_runner_run(const ft_sample_runner *runner, size_t session,
                                           size_t row, size_t sample, ft_error *err);

/* All samples have run: the next runner resumes at the cut of this one. */
void ft_sample_runner_advance(const ft_sample_runner *runner);

/* Rows of value i of the sample that a session ran last; and the value itself, [*rows, cols]. */
size_t ft_sample_runner_rows(const ft_sample_runner *runner, size_t i, size_t session);
FT_MUST_USE ft_status ft_sample_runner_read(const ft_sample_runner *runner, size_t i,
                                            size_t session, float *x, size_t *rows, ft_error *err);

#endif
