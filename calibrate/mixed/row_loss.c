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

static double softmax_loss(const ft_compared_row *row)
{
    return ft_softmax_divergence(row->found, ft_log_sum_of_row(row->found, row->n), row->real,
                                 row->log_sum, row->n);
}

static double sigmoid_loss(const ft_compared_row *row)
{
    return ft_sigmoid_divergence(row->found, row->real, row->n);
}

static double cosine_loss(const ft_compared_row *row)
{
    return 1.0 - ft_cosine(row->real, row->found, row->n);
}

static double square_error(const ft_compared_row *row)
{
    double signal = 0.0, noise = 0.0;
    for (size_t i = 0; i < row->n; i++) {
        double error = (double) row->real[i] - (double) row->found[i];
        noise += error * error;
        signal += (double) row->real[i] * (double) row->real[i];
    }
    return noise / signal;
}

/* By how much less likely the next token is, as a logarithm. */
static double perplexity_loss(const ft_compared_row *row)
{
    double real = (double) row->real[row->label] - row->log_sum;
    return real - ((double) row->found[row->label] - ft_log_sum_of_row(row->found, row->n));
}

static double accuracy_loss(const ft_compared_row *row)
{
    int32_t real = (int32_t) ft_argmax(row->real, row->n);
    int32_t found = (int32_t) ft_argmax(row->found, row->n);
    int32_t label = row->label >= 0 ? row->label : real;
    return (double) (real == label) - (double) (found == label);
}

static ft_row_loss *divergence_of(const ft_model *model)
{
    return ft_has_softmax(model) ? softmax_loss : sigmoid_loss;
}

static ft_row_loss *distance_of(const ft_model *model)
{
    return ft_head_is_classifier(model->config.head) ? square_error : cosine_loss;
}

ft_row_loss *ft_row_loss_of(ft_loss_kind kind, const ft_model *model)
{
    switch (kind) {
    case FT_LOSS_KL:
        return divergence_of(model);
    case FT_LOSS_PERPLEXITY:
        return perplexity_loss;
    case FT_LOSS_ACCURACY:
        return accuracy_loss;
    case FT_LOSS_COSINE:
        break;
    }
    return distance_of(model);
}
