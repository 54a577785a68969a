/*
 * class_scores.c - predictions and probabilities of classifiers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/class_scores.h"

#include "kernels/math/elementary.h"

#include <math.h>

size_t ft_argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

double ft_sigmoid(float x)
{
    return 1.0 / (1.0 + ft_math_exp(-(double) x));
}

static double softmax(const float *logits, size_t n, size_t i)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++)
        sum += ft_math_exp((double) logits[k] - (double) logits[i]);
    return 1.0 / sum;
}

double ft_class_probability(ft_problem problem, const float *logits, size_t n, size_t i)
{
    return problem == FT_PROBLEM_MULTI ? ft_sigmoid(logits[i]) : softmax(logits, n, i);
}

bool ft_label_is_positive(float logit)
{
    return logit > 0.0f;
}

bool ft_predictions_agree(ft_problem problem, const float *a, const float *b, size_t n)
{
    if (problem == FT_PROBLEM_SINGLE)
        return ft_argmax(a, n) == ft_argmax(b, n);
    for (size_t i = 0; i < n; i++)
        if (ft_label_is_positive(a[i]) != ft_label_is_positive(b[i]))
            return false;
    return true;
}
