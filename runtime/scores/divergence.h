/*
 * divergence.h - how far the outputs of one model are from those of another, row by row.
 *
 * Computed in double precision, in index order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_DIVERGENCE_H
#define FT_RUNTIME_SCORES_DIVERGENCE_H

#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The logarithm of the sum of e^x over n > 0 logits, the largest of which is `max`. */
double ft_log_sum_exp(const float *x, size_t n, double max);

/*
 * The Kullback-Leibler divergence of softmax(logits) from softmax(baseline) in nats, at least 0.
 * log_sum and baseline_log_sum are their ft_log_sum_exp(). Labels of probability 0 in the baseline
 * count nothing.
 */
double ft_softmax_divergence(const float *logits, double log_sum, const float *baseline,
                             double baseline_log_sum, size_t n);

/* The same for independent labels: the sum of the divergences of their sigmoids. */
double ft_sigmoid_divergence(const float *logits, const float *baseline, size_t n);

/* The cosine of the angle between two vectors; 0 if one is zero. */
double ft_cosine(const float *a, const float *b, size_t n);

#pragma GCC visibility pop

#endif
