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

size_t ft_largest(const float *x, size_t n)
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

bool ft_class_holds(float logit)
{
    return logit > 0.0f;
}

bool ft_classes_agree(ft_problem problem, const float *a, const float *b, size_t n)
{
    if (problem == FT_PROBLEM_SINGLE)
        return ft_largest(a, n) == ft_largest(b, n);
    for (size_t i = 0; i < n; i++)
        if (ft_class_holds(a[i]) != ft_class_holds(b[i]))
            return false;
    return true;
}

/* ---- Metrics ------------------------------------------------------------------------------ */

bool ft_dataset_has_labels(const ft_dataset *dataset)
{
    return dataset->labels != NULL || dataset->numbers != NULL;
}

ft_status ft_tally_init(ft_tally *out, const ft_config *config, ft_error *err)
{
    *out = (ft_tally){ .problem = config->problem, .labels = (size_t) config->labels };
    if (config->problem != FT_PROBLEM_REGRESSION)
        return FT_OK;
    out->correlation = ft_array(out->labels, sizeof *out->correlation);
    return out->correlation != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for %zu correlations", out->labels);
}

void ft_tally_fini(ft_tally *tally)
{
    free(tally->correlation);
    *tally = (ft_tally){ .rows = 0 };
}

/* Add pair number `count` with Welford's algorithm. */
static void correlate(ft_correlation *c, double x, double y, size_t count)
{
    double from[2] = { x - c->mean[0], y - c->mean[1] };
    for (int i = 0; i < 2; i++)
        c->mean[i] += from[i] / (double) count;
    c->squares[0] += from[0] * (x - c->mean[0]);
    c->squares[1] += from[1] * (y - c->mean[1]);
    c->products += from[0] * (y - c->mean[1]);
}

static void add_labels(ft_tally *tally, const float *logits, const float *numbers)
{
    size_t right = 0;
    for (size_t i = 0; i < tally->labels; i++)
        right += ft_class_holds(logits[i]) == (numbers[i] != 0.0f);
    tally->right += right;
    tally->exact += right == tally->labels;
}

static void add_quantities(ft_tally *tally, const float *logits, const float *numbers)
{
    for (size_t i = 0; i < tally->labels; i++) {
        double x = (double) logits[i], y = (double) numbers[i];
        tally->squares += (x - y) * (x - y);
        correlate(&tally->correlation[i], x, y, tally->rows);
    }
}

void ft_tally_add_numbers(ft_tally *tally, const float *logits, const float *numbers)
{
    tally->rows++;
    if (tally->problem == FT_PROBLEM_REGRESSION)
        add_quantities(tally, logits, numbers);
    else
        add_labels(tally, logits, numbers);
}

void ft_tally_add(ft_tally *tally, const float *logits, const ft_dataset *data, size_t row)
{
    if (data->numbers != NULL) {
        ft_tally_add_numbers(tally, logits, data->numbers + row * tally->labels);
        return;
    }
    tally->rows++;
    tally->right += ft_largest(logits, tally->labels) == (size_t) data->labels[row];
}

static double mean_correlation(const ft_tally *tally)
{
    double sum = 0.0;
    for (size_t i = 0; i < tally->labels; i++) {
        const ft_correlation *c = &tally->correlation[i];
        sum += c->products / sqrt(c->squares[0] * c->squares[1]);
    }
    return sum / (double) tally->labels;
}

static size_t regression_metrics(const ft_tally *t, ft_metric out[FT_METRICS])
{
    double pearson = mean_correlation(t);
    out[0] = (ft_metric){ "mse", t->squares / (double) (t->rows * t->labels), false };
    out[1] = (ft_metric){ "pearson", pearson, true };
    return isnan(pearson) ? 1 : 2;
}

size_t ft_tally_metrics(const ft_tally *tally, ft_metric out[FT_METRICS])
{
    double rows = (double) tally->rows, labels = (double) tally->labels;
    if (tally->rows == 0)
        return 0;
    if (tally->problem == FT_PROBLEM_REGRESSION)
        return regression_metrics(tally, out);
    bool several = tally->problem == FT_PROBLEM_MULTI;
    out[0] =
        (ft_metric){ "accuracy", (double) tally->right / (several ? rows * labels : rows), true };
    out[1] = (ft_metric){ "exact_match", (double) tally->exact / rows, true };
    return several && tally->labels > 1 ? 2 : 1;
}
