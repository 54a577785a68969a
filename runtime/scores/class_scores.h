/*
 * class_scores.h - predictions, probabilities and metrics of classifiers, by problem_type.
 *
 * Logits become probabilities as in the pipelines of transformers and in CrossEncoder of
 * sentence-transformers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_CLASS_SCORES_H
#define FT_RUNTIME_SCORES_CLASS_SCORES_H

#include "runtime/data/dataset.h"
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

/* ---- Metrics ------------------------------------------------------------------------------ */

/* Pearson correlation: running means, and sums of squared and multiplied deviations. */
typedef struct ft_correlation {
    double mean[2], squares[2], products;
} ft_correlation;

/* Accumulates metrics over rows. */
typedef struct ft_metric_accumulator {
    ft_problem problem_type;
    size_t labels, rows;
    size_t num_correct;          /* correct rows; multi-label: correct labels */
    size_t num_exact;            /* multi-label: rows with all labels correct */
    double squares;              /* regression: sum of squared errors */
    ft_correlation *correlation; /* regression: [labels]; owned */
} ft_metric_accumulator;

FT_MUST_USE ft_status ft_metric_accumulator_init(ft_metric_accumulator *out,
                                                 const ft_config *config, ft_error *err);
void ft_metric_accumulator_fini(ft_metric_accumulator *metrics); /* accepts a zeroed one */

/* Add a row: its logits and the labels of the dataset, or explicit targets [labels]. */
void ft_metric_accumulator_add_row(ft_metric_accumulator *metrics, const float *logits,
                                   const ft_dataset *data, size_t row);
void ft_metric_accumulator_add_targets(ft_metric_accumulator *metrics, const float *logits,
                                       const float *numbers);

/* Whether the dataset has labels. */
bool ft_dataset_has_labels(const ft_dataset *dataset);

typedef struct ft_metric {
    const char *name;
    double value;
    bool is_fraction; /* a fraction of 1, printed with four digits */
} ft_metric;

enum { FT_MAX_METRICS = 2 };

/*
 * Compute the metrics: "accuracy" (of rows, or multi-label of labels) and multi-label
 * "exact_match"; for regression "mse" and "pearson", the mean over the labels, which is omitted if
 * one side is constant.  Returns their number; 0 without rows.
 */
size_t ft_metric_accumulator_compute(const ft_metric_accumulator *metrics,
                                     ft_metric out[FT_MAX_METRICS]);

#pragma GCC visibility pop

#endif
