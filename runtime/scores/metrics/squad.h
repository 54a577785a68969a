/*
 * squad.h - exact match and F1 of an answer, as the evaluation script of SQuAD 2.0 computes them:
 * case, punctuation, articles and white space do not count.
 *
 * Rajpurkar et al., "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL 2018.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_SQUAD_H
#define FT_RUNTIME_SCORES_METRICS_SQUAD_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Each from 0 to 1. */
typedef struct ft_answer_score {
    double exact, f1;
} ft_answer_score;

/*
 * Score an answer against the reference answers (valid UTF-8, NUL-terminated), and keep the best of
 * each. "" is no answer; count 0 means that no answer is right. False when out of memory.
 */
FT_MUST_USE bool ft_answer_compare(const char *answer, const char *const *references, size_t count,
                                   ft_answer_score *score);

#pragma GCC visibility pop

#endif
