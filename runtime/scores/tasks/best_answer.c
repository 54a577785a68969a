/*
 * best_answer.c - for every end the best start of the last tokens: linear in the length times 40.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/tasks/best_answer.h"

#include "kernels/math/elementary.h"

#include <math.h>

void ft_answer_init(ft_answer *answer)
{
    *answer = (ft_answer){ .null_logit = (double) INFINITY };
}

/* Tokens that compete for an end of the answer: those of the context, and the first one. */
static bool competes(const ft_encoding *window, size_t token)
{
    return window->sequence[token] == 1 || token == 0;
}

/* The logarithm of the sum of exponentials of the competing tokens. */
static double log_sum(const ft_encoding *window, const float *logits)
{
    double most = -(double) INFINITY, sum = 0.0;
    for (size_t i = 0; i < window->count; i++)
        if (competes(window, i))
            most = fmax(most, (double) logits[i]);
    for (size_t i = 0; i < window->count; i++)
        if (competes(window, i))
            sum += ft_math_exp((double) logits[i] - most);
    return most + ft_math_log(sum);
}

/* The best start of an answer that ends with `last`. */
static size_t best_start(const ft_encoding *window, const float *start, size_t last)
{
    size_t best = last;
    for (size_t i = last, tokens = 0; tokens < FT_ANSWER_MAX_TOKENS; i--, tokens++) {
        if (window->sequence[i] != 1)
            break;
        if (start[i] >= start[best])
            best = i;
        if (i == 0)
            break;
    }
    return best;
}

void ft_answer_add_window(ft_answer *answer, const ft_encoding *window, const float *start,
                          const float *end)
{
    double all = log_sum(window, start) + log_sum(window, end);
    double none = (double) start[0] + (double) end[0];
    if (none < answer->null_logit) {
        answer->null_logit = none;
        answer->null_score = ft_math_exp(none - all);
    }
    for (size_t last = 0; last < window->count; last++) {
        if (window->sequence[last] != 1)
            continue;
        size_t first = best_start(window, start, last);
        double logit = (double) start[first] + (double) end[last];
        if (answer->found && logit <= answer->logit)
            continue;
        answer->found = true;
        answer->logit = logit;
        answer->score = ft_math_exp(logit - all);
        answer->start = window->offsets[first].start;
        answer->end = window->offsets[last].end;
    }
}

bool ft_answer_is_none(const ft_answer *answer)
{
    return !answer->found || answer->null_logit >= answer->logit;
}
