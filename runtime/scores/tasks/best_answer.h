/*
 * best_answer.h - the answer to a question from the logits of its windows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_TASKS_BEST_ANSWER_H
#define FT_RUNTIME_SCORES_TASKS_BEST_ANSWER_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_ANSWER_MAX_TOKENS = 40 /* of an answer */ };

/* The best answer so far: bytes [start, end) of the context. Initialize it with ft_answer_init().
 */
typedef struct ft_answer {
    bool found; /* else there is none */
    uint32_t start, end;
    double logit, score;           /* sum of its two logits; its probability in its window */
    double null_logit, null_score; /* the same of no answer, which the first token stands for; the
                                      least of all windows */
} ft_answer;

void ft_answer_init(ft_answer *answer);

/*
 * Consider the spans of at most FT_ANSWER_MAX_TOKENS tokens of the context in one window; start and
 * end are its logits [tokens]. No answer wins where its logits sum to at least as much as those of
 * the best span: the rule of SQuAD 2.0 with a threshold of 0.
 */
void ft_answer_add_window(ft_answer *answer, const ft_encoding *window, const float *start,
                          const float *end);

/* Whether the question has no answer in the context. */
bool ft_answer_is_none(const ft_answer *answer);

#pragma GCC visibility pop

#endif
