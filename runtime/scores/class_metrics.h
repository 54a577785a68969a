/*
 * class_metrics.h - metrics of classifiers and regression models against labels, by problem_type.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_CLASS_METRICS_H
#define FT_RUNTIME_SCORES_CLASS_METRICS_H

#include "runtime/data/dataset.h"
#include "runtime/graph/model_config.h"
#include "runtime/scores/metrics/label_f1.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Pearson correlation: running means, and sums of squared and multiplied deviations. */
typedef struct ft_correlation {
    double mean[2], squares[2], products;
} ft_correlation;

/* Accumulates metrics over rows. */
typedef struct ft_metric_accumulator {
    ft_problem problem_type;
    size_t labels, rows;
    size_t capacity;             /* rows that may be added */
    size_t num_correct;          /* correct rows; multi-label: correct labels */
    size_t num_exact;            /* multi-label: rows with all labels correct */
    size_t num_top5;             /* rows whose class is among the five most likely ones */
    bool has_top5;               /* images of more than five classes */
    ft_label_counts *counts;     /* [labels]; owned; NULL for regression */
    double squares;              /* regression: sum of squared errors */
    ft_correlation *correlation; /* regression: [labels]; owned */
    double *found, *expected;    /* regression: [labels, capacity]; owned */
    double spearman;             /* regression: mean over the labels, once finished */
} ft_metric_accumulator;

/* For at most `rows` rows of a model with that configuration. */
FT_MUST_USE ft_status ft_metric_accumulator_init(ft_metric_accumulator *out,
                                                 const ft_config *config, size_t rows,
                                                 ft_error *err);
void ft_metric_accumulator_fini(ft_metric_accumulator *metrics); /* accepts a zeroed one */

/* Add a row: its logits and the labels of the dataset, or explicit targets [labels]. */
void ft_metric_accumulator_add_row(ft_metric_accumulator *metrics, const float *logits,
                                   const ft_dataset *data, size_t row);
void ft_metric_accumulator_add_targets(ft_metric_accumulator *metrics, const float *logits,
                                       const float *numbers);

/* After the last row: rank the values of regression models. FT_ENOMEM. */
FT_MUST_USE ft_status ft_metric_accumulator_finish(ft_metric_accumulator *metrics, ft_error *err);

/* Whether the dataset has labels. */
bool ft_dataset_has_labels(const ft_dataset *dataset);

typedef struct ft_metric {
    const char *name;
    double value;
    bool is_fraction; /* a fraction of 1, printed with four digits */
} ft_metric;

enum { FT_MAX_METRICS = 4 };

/*
 * Compute the metrics:
 *
 * - one label: "accuracy", "macro_f1" over the classes that occur, and for images of more than five
 *   classes "top5_accuracy";
 * - multi-label: "accuracy" of labels, "exact_match" of rows, which is the subset accuracy (if
 *   there are several labels), "micro_f1", and "macro_f1" over all labels;
 * - regression: "mse", and the means over the labels of "pearson" and "spearman", which are omitted
 *   if one side is constant.
 *
 * Returns their number; 0 without rows.
 */
size_t ft_metric_accumulator_compute(const ft_metric_accumulator *metrics,
                                     ft_metric out[FT_MAX_METRICS]);

#pragma GCC visibility pop

#endif
