/*
 * class_scores.h - predictions and probabilities of classifiers, by problem_type.
 *
 * Logits become probabilities as in the pipelines of transformers and in CrossEncoder of
 * sentence-transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_CLASS_SCORES_H
#define FT_RUNTIME_SCORES_CLASS_SCORES_H

#include "runtime/graph/model_config.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* The largest of n > 0 numbers, the first among equals. */
size_t ft_argmax(const float *x, size_t n);

/* 1 / (1 + e^-x) */
double ft_sigmoid(float x);

/* The probability of label i of n: softmax, or sigmoid if multi-label.  Not for regression. */
double ft_class_probability(ft_problem problem_type, const float *logits, size_t n, size_t i);

/* Multi-label: whether the label is predicted, that is its probability is above 0.5. */
bool ft_label_is_positive(float logit);

/* Whether two rows of logits predict the same class or set of labels.  Not for regression. */
bool ft_predictions_agree(ft_problem problem_type, const float *a, const float *b, size_t n);

#pragma GCC visibility pop

#endif
