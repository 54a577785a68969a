/*
 * row_loss.c - the loss of one row of an output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/mixed/row_loss.h"

#include "runtime/scores/class_scores.h"
#include "runtime/scores/divergence.h"

double ft_log_sum_of_row(const float *x, size_t n)
{
    return ft_log_sum_exp(x, n, (double) x[ft_argmax(x, n)]);
}

double ft_softmax_loss(const float *a, double log_sum, const float *b, size_t n)
{
    return ft_softmax_divergence(b, ft_log_sum_of_row(b, n), a, log_sum, n);
}

static double sigmoid_loss(const float *a, double log_sum, const float *b, size_t n)
{
    (void) log_sum;
    return ft_sigmoid_divergence(b, a, n);
}

static double cosine_loss(const float *a, double log_sum, const float *b, size_t n)
{
    (void) log_sum;
    return 1.0 - ft_cosine(a, b, n);
}

static double square_error(const float *a, double log_sum, const float *b, size_t n)
{
    (void) log_sum;
    double signal = 0.0, noise = 0.0;
    for (size_t i = 0; i < n; i++) {
        noise += ((double) a[i] - (double) b[i]) * ((double) a[i] - (double) b[i]);
        signal += (double) a[i] * (double) a[i];
    }
    return noise / signal;
}

ft_row_loss *ft_row_loss_of(ft_loss_kind kind, const ft_model *model)
{
    bool classifies = ft_head_is_classifier(model->config.head);
    if (kind == FT_LOSS_KL)
        return classifies && model->config.problem_type == FT_PROBLEM_MULTI ? sigmoid_loss
                                                                            : ft_softmax_loss;
    return classifies && model->config.problem_type == FT_PROBLEM_REGRESSION ? square_error
                                                                             : cosine_loss;
}
