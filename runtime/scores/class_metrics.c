/*
 * class_metrics.c - counts of rows and labels, and the metrics that follow from them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/class_metrics.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/scores/class_scores.h"
#include "runtime/scores/metrics/spearman.h"

#include <math.h>
#include <stdlib.h>

enum { TOP = 5 };

bool ft_dataset_has_labels(const ft_dataset *dataset)
{
    return dataset->labels != NULL || dataset->float_labels != NULL;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static bool allocate_numbers(ft_metric_accumulator *metrics)
{
    size_t values;
    if (!ft_checked_mul(metrics->labels, metrics->capacity, &values))
        return false;
    metrics->correlation = ft_calloc(metrics->labels, sizeof *metrics->correlation);
    metrics->found = ft_calloc(values, sizeof *metrics->found);
    metrics->expected = ft_calloc(values, sizeof *metrics->expected);
    return metrics->correlation != NULL && metrics->found != NULL && metrics->expected != NULL;
}

static bool allocate(ft_metric_accumulator *metrics)
{
    if (metrics->problem_type == FT_PROBLEM_REGRESSION)
        return allocate_numbers(metrics);
    metrics->counts = ft_calloc(metrics->labels, sizeof *metrics->counts);
    return metrics->counts != NULL;
}

ft_status ft_metric_accumulator_init(ft_metric_accumulator *out, const ft_config *config,
                                     size_t rows, ft_error *err)
{
    size_t labels = (size_t) config->labels;
    *out = (ft_metric_accumulator){
        .problem_type = config->problem_type,
        .labels = labels,
        .capacity = rows,
        .has_top5 = ft_config_is_vision(config) && labels > TOP &&
                    config->problem_type == FT_PROBLEM_SINGLE,
        .spearman = (double) NAN,
    };
    if (allocate(out))
        return FT_OK;
    ft_metric_accumulator_fini(out);
    return ft_fail(err, FT_ENOMEM, "no memory for the metrics of %zu rows and %zu labels", rows,
                   labels);
}

void ft_metric_accumulator_fini(ft_metric_accumulator *metrics)
{
    free(metrics->counts);
    free(metrics->correlation);
    free(metrics->found);
    free(metrics->expected);
    *metrics = (ft_metric_accumulator){ .rows = 0 };
}

/* ---- Rows ----------------------------------------------------------------------------------- */

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
    for (size_t i = 0; i < metrics->labels; i++) {
        bool predicted = ft_label_is_positive(logits[i]), expected = numbers[i] != 0.0f;
        metrics->counts[i].predicted += predicted;
        metrics->counts[i].expected += expected;
        metrics->counts[i].right += predicted && expected;
        num_correct += predicted == expected;
    }
    metrics->num_correct += num_correct;
    metrics->num_exact += num_correct == metrics->labels;
}

static void add_regression(ft_metric_accumulator *metrics, const float *logits,
                           const float *numbers)
{
    for (size_t i = 0; i < metrics->labels; i++) {
        double x = (double) logits[i], y = (double) numbers[i];
        size_t at = i * metrics->capacity + metrics->rows - 1;
        metrics->squares += (x - y) * (x - y);
        metrics->found[at] = x;
        metrics->expected[at] = y;
        correlate(&metrics->correlation[i], x, y, metrics->rows);
    }
}

/* The number of classes that are more likely than one; of equal ones, those before it are. */
static size_t rank_of(const float *logits, size_t n, size_t class)
{
    size_t rank = 0;
    for (size_t i = 0; i < n; i++)
        rank += logits[i] > logits[class] || (logits[i] == logits[class] && i < class);
    return rank;
}

static void add_class(ft_metric_accumulator *metrics, const float *logits, size_t class)
{
    size_t best = ft_argmax(logits, metrics->labels);
    metrics->counts[best].predicted++;
    metrics->counts[class].expected++;
    metrics->counts[class].right += best == class;
    metrics->num_correct += best == class;
    metrics->num_top5 += rank_of(logits, metrics->labels, class) < TOP;
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
    add_class(metrics, logits, (size_t) data->labels[row]);
}

/* ---- Metrics -------------------------------------------------------------------------------- */

ft_status ft_metric_accumulator_finish(ft_metric_accumulator *metrics, ft_error *err)
{
    double sum = 0.0;
    if (metrics->problem_type != FT_PROBLEM_REGRESSION || metrics->rows == 0)
        return FT_OK;
    for (size_t i = 0; i < metrics->labels; i++) {
        double one;
        size_t at = i * metrics->capacity;
        if (!ft_spearman(metrics->found + at, metrics->expected + at, metrics->rows, &one))
            return ft_fail(err, FT_ENOMEM, "no memory to rank %zu rows", metrics->rows);
        sum += one;
    }
    metrics->spearman = sum / (double) metrics->labels;
    return FT_OK;
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
    size_t count = 0;
    out[count++] = (ft_metric){ "mse", t->squares / (double) (t->rows * t->labels), false };
    if (!isnan(pearson))
        out[count++] = (ft_metric){ "pearson", pearson, true };
    if (!isnan(t->spearman))
        out[count++] = (ft_metric){ "spearman", t->spearman, true };
    return count;
}

static size_t multi_label_metrics(const ft_metric_accumulator *t, ft_metric out[FT_MAX_METRICS])
{
    double rows = (double) t->rows, labels = (double) t->labels;
    size_t count = 0;
    out[count++] = (ft_metric){ "accuracy", (double) t->num_correct / (rows * labels), true };
    if (t->labels > 1)
        out[count++] = (ft_metric){ "exact_match", (double) t->num_exact / rows, true };
    out[count++] = (ft_metric){ "micro_f1", ft_micro_f1(t->counts, t->labels), true };
    out[count++] = (ft_metric){ "macro_f1", ft_mean_label_f1(t->counts, t->labels), true };
    return count;
}

static size_t class_metrics(const ft_metric_accumulator *t, ft_metric out[FT_MAX_METRICS])
{
    double rows = (double) t->rows;
    out[0] = (ft_metric){ "accuracy", (double) t->num_correct / rows, true };
    out[1] = (ft_metric){ "macro_f1", ft_macro_f1(t->counts, t->labels), true };
    out[2] = (ft_metric){ "top5_accuracy", (double) t->num_top5 / rows, true };
    return t->has_top5 ? 3 : 2;
}

size_t ft_metric_accumulator_compute(const ft_metric_accumulator *metrics,
                                     ft_metric out[FT_MAX_METRICS])
{
    if (metrics->rows == 0)
        return 0;
    switch (metrics->problem_type) {
    case FT_PROBLEM_REGRESSION:
        return regression_metrics(metrics, out);
    case FT_PROBLEM_MULTI:
        return multi_label_metrics(metrics, out);
    case FT_PROBLEM_SINGLE:
        break;
    }
    return class_metrics(metrics, out);
}
