/*
 * activation_checkpoint.h - the live values of many forward passes at one operation, so that later
 * passes over the same samples resume there.
 *
 * Calibration observes one layer after the other on the same samples.  With checkpoints it runs
 * each operation about once instead of once per later layer.  Source of the term: Chen et al. 2016,
 * "Training Deep Nets with Sublinear Memory Cost".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_ACTIVATION_CHECKPOINT_H
#define FT_RUNTIME_MODEL_ACTIVATION_CHECKPOINT_H

#include "runtime/model/session.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_activation_checkpoint {
    const ft_backend *backend;
    int op;       /* all samples resume before this operation of the plan; 0: at the start */
    size_t count; /* samples */
    void **state; /* [count]: saved values on the device; NULL: none */
} ft_activation_checkpoint;

/* Checkpoints of `count` samples, all at the start.  FT_ENOMEM.  fini also accepts a zeroed or
 * failed one. */
FT_MUST_USE ft_status ft_activation_checkpoint_init(ft_activation_checkpoint *checkpoint,
                                                    const ft_backend *backend, size_t count,
                                                    ft_error *err);
void ft_activation_checkpoint_fini(ft_activation_checkpoint *checkpoint);

/* Back to the start; frees the saved values. */
void ft_activation_checkpoint_reset(ft_activation_checkpoint *checkpoint);

/*
 * The operation, at most `latest`, that samples should resume at next, and what that takes for each
 * token.  FT_ENOMEM.
 */
typedef struct ft_resume_point {
    int op;
    size_t token_bytes;
} ft_resume_point;

FT_MUST_USE ft_status ft_resume_point_find(ft_resume_point *out, const ft_plan *plan, int latest,
                                           ft_error *err);

/* Whether two plans have the same operations, on values of the same names, before operation `op`. */
bool ft_plan_same_start(const ft_plan *a, const ft_plan *b, int op);

/* A part of a forward pass. */
typedef struct ft_segment {
    size_t sample; /* whose inputs are set in the session */
    int cut;       /* save the values live there; at most checkpoint->op: keep the old ones */
    int end;       /* the operation to stop before */
} ft_segment;

/*
 * Run operations checkpoint->op .. end - 1 of a session that is not of an encoder-decoder; its
 * outputs can be read if that is the end of its plan.  Different sessions may run different samples
 * at the same time.  The plan may be another than that of the session that saved the sample, if both
 * have the same operations up to checkpoint->op.  After all samples have run with the same cut,
 * ft_activation_checkpoint_advance() makes them resume there.
 */
FT_MUST_USE ft_status ft_session_run_segment(ft_session *session,
                                             ft_activation_checkpoint *checkpoint,
                                             const ft_segment *segment, ft_error *err);
void ft_activation_checkpoint_advance(ft_activation_checkpoint *checkpoint, int cut);

#pragma GCC visibility pop

#endif
