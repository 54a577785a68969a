/*
 * token_scores.h - logits of every token of a dataset, one forward pass at a time.
 *
 * Needs memory for one pass only: longer rows continue in the KV cache.  The logits of a token do
 * not depend on how rows are split into chunks, nor on the batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_TOKEN_SCORES_H
#define FT_RUNTIME_SCORES_TOKEN_SCORES_H

#include "runtime/data/dataset.h"
#include "runtime/model/session.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_scorer ft_scorer;

/* The result of one pass; valid until the next one. */
typedef struct ft_token_logits {
    size_t count;        /* tokens; 0: the dataset is finished */
    const size_t *row;   /* [count]: row of the dataset */
    const int32_t *next; /* [count]: the next token of the row; -1: unknown */
    const float *logits; /* [count, vocabulary] */
    size_t vocabulary;
} ft_token_logits;

/*
 * The session must have options.all_logits and KV cache capacity for the longest row, and must
 * not be used otherwise until the scorer is closed.  The caller keeps ownership of session and
 * data.  Two scorers of the same data, in sessions with equal limits, use the same batches.
 * FT_ELIMIT: a row does not fit.
 *
 * A dataset with target_labels is read in source-target pairs: the model is an encoder-decoder, and
 * a pass must have room for the longest source and target.
 */
FT_MUST_USE ft_status ft_scorer_open(ft_scorer **out, ft_session *session, const ft_dataset *data,
                                     ft_error *err);
void ft_scorer_close(ft_scorer *scorer); /* accepts NULL */

FT_MUST_USE ft_status ft_scorer_run(ft_scorer *scorer, ft_token_logits *out, ft_error *err);

#pragma GCC visibility pop

#endif
