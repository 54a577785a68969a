/*
 * token_scores.h - the logits of every token of many rows, a run at a time.
 *
 * Memory is that of one run: a row that is longer goes on in the cache.  What a token's logits are
 * does not depend on how rows were cut, nor on their neighbours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_TOKEN_SCORES_H
#define FT_RUNTIME_SCORES_TOKEN_SCORES_H

#include "runtime/data/dataset.h"
#include "runtime/model/session.h"

typedef struct ft_scorer ft_scorer;

/* What one run has computed, until the next one. */
typedef struct ft_scored {
    size_t count;        /* 0: all rows have been read */
    const size_t *row;   /* [count]: of the data */
    const int32_t *next; /* [count]: what follows in this row; -1: nobody knows */
    const float *logits; /* [count, vocabulary] */
    size_t vocabulary;
} ft_scored;

/*
 * The session has options.every_logits, and room in its cache for the longest row; nobody else uses
 * it meanwhile.  Both stay the caller's.  Two scorers of the same data, in sessions with the same
 * limits, make the same runs.  FT_ELIMIT: a row does not fit.
 *
 * Data with labels of targets (ft_dataset.target_labels) are read in pairs: the session's model is
 * an encoder-decoder, and a run has room for the longest source and target.
 */
FT_MUST_USE ft_status ft_scorer_open(ft_scorer **out, ft_session *session, const ft_dataset *data,
                                     ft_error *err);
void ft_scorer_close(ft_scorer *scorer); /* takes NULL */

FT_MUST_USE ft_status ft_scorer_run(ft_scorer *scorer, ft_scored *out, ft_error *err);

#endif
