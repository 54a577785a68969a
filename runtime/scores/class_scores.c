/*
 * class_scores.c - predictions, probabilities and metrics of classifiers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/class_scores.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

size_t ft_argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

double ft_sigmoid(float x)
{
    return 1.0 / (1.0 + exp(-(double) x));
}

static double softmax(const float *logits, size_t n, size_t i)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++)
        sum += exp((double) logits[k] - (double) logits[i]);
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

/* ---- Metrics ------------------------------------------------------------------------------ */

bool ft_dataset_has_labels(const ft_dataset *dataset)
{
    return dataset->labels != NULL || dataset->float_labels != NULL;
}

ft_status ft_metric_accumulator_init(ft_metric_accumulator *out, const ft_config *config,
                                     ft_error *err)
{
    *out = (ft_metric_accumulator){ .problem_type = config->problem_type,
                                    .labels = (size_t) config->labels };
    if (config->problem_type != FT_PROBLEM_REGRESSION)
        return FT_OK;
    out->correlation = ft_calloc(out->labels, sizeof *out->correlation);
    return out->correlation != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %zu correlations", out->labels);
}

void ft_metric_accumulator_fini(ft_metric_accumulator *metrics)
{
    free(metrics->correlation);
    *metrics = (ft_metric_accumulator){ .rows = 0 };
}

/* Add pair number `count` with Welford's algorithm. */
static void correlate(ft_correlation *c, double x, double y, size_t count)
{
    double deviation[2] = { x - c->mean[0], y - c->mean[1] };
    for (int i = 0; i < 2; i++)
        c->mean[i] += deviation[i] / (double) count;
    c->squares[0] += deviation[0] * (x - c->mean[0]);
    c->squares[1] += deviation[1] * (y - c->mean[1]);
    c->products += deviation[0] * (y - c->mean[1]);
}

static void add_multi_label(ft_metric_accumulator *metrics, const float *logits,
                            const float *numbers)
{
    size_t num_correct = 0;
    for (size_t i = 0; i < metrics->labels; i++)
        num_correct += ft_label_is_positive(logits[i]) == (numbers[i] != 0.0f);
    metrics->num_correct += num_correct;
    metrics->num_exact += num_correct == metrics->labels;
}

static void add_regression(ft_metric_accumulator *metrics, const float *logits,
                           const float *numbers)
{
    for (size_t i = 0; i < metrics->labels; i++) {
        double x = (double) logits[i], y = (double) numbers[i];
        metrics->squares += (x - y) * (x - y);
        correlate(&metrics->correlation[i], x, y, metrics->rows);
    }
}

void ft_metric_accumulator_add_targets(ft_metric_accumulator *metrics, const float *logits,
                                       const float *numbers)
{
    metrics->rows++;
    if (metrics->problem_type == FT_PROBLEM_REGRESSION)
        add_regression(metrics, logits, numbers);
    else
        add_multi_label(metrics, logits, numbers);
}

void ft_metric_accumulator_add_row(ft_metric_accumulator *metrics, const float *logits,
                                   const ft_dataset *data, size_t row)
{
    if (data->float_labels != NULL) {
        ft_metric_accumulator_add_targets(metrics, logits,
                                          data->float_labels + row * metrics->labels);
        return;
    }
    metrics->rows++;
    metrics->num_correct += ft_argmax(logits, metrics->labels) == (size_t) data->labels[row];
}

static double mean_correlation(const ft_metric_accumulator *metrics)
{
    double sum = 0.0;
    for (size_t i = 0; i < metrics->labels; i++) {
        const ft_correlation *c = &metrics->correlation[i];
        sum += c->products / sqrt(c->squares[0] * c->squares[1]);
    }
    return sum / (double) metrics->labels;
}

static size_t regression_metrics(const ft_metric_accumulator *t, ft_metric out[FT_MAX_METRICS])
{
    double pearson = mean_correlation(t);
    out[0] = (ft_metric){ "mse", t->squares / (double) (t->rows * t->labels), false };
    out[1] = (ft_metric){ "pearson", pearson, true };
    return isnan(pearson) ? 1 : 2;
}

size_t ft_metric_accumulator_compute(const ft_metric_accumulator *metrics,
                                     ft_metric out[FT_MAX_METRICS])
{
    double rows = (double) metrics->rows, labels = (double) metrics->labels;
    if (metrics->rows == 0)
        return 0;
    if (metrics->problem_type == FT_PROBLEM_REGRESSION)
        return regression_metrics(metrics, out);
    bool multi_label = metrics->problem_type == FT_PROBLEM_MULTI;
    out[0] =
        (ft_metric){ "accuracy",
                     (double) metrics->num_correct / (multi_label ? rows * labels : rows), true };
    out[1] = (ft_metric){ "exact_match", (double) metrics->num_exact / rows, true };
    return multi_label && metrics->labels > 1 ? 2 : 1;
}
