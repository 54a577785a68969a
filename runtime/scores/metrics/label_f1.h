/*
 * label_f1.h - F1 of each label and its averages, as scikit-learn's f1_score computes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_LABEL_F1_H
#define FT_RUNTIME_SCORES_METRICS_LABEL_F1_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Counts of one label over all rows. */
typedef struct ft_label_counts {
    size_t predicted, expected, right;
} ft_label_counts;

/* Harmonic mean of precision and recall; 0 where the label was never right. */
double ft_label_f1(const ft_label_counts *counts);

/*
 * The macro average where a row has exactly one class: the mean F1 of the classes that were
 * predicted or expected at least once; NaN if none was.
 */
double ft_macro_f1(const ft_label_counts *counts, size_t labels);

/*
 * The macro average where a row has any number of labels: the mean F1 of all labels. A label that
 * was neither predicted nor expected counts as 0.
 */
double ft_mean_label_f1(const ft_label_counts *counts, size_t labels);

/* The micro average: F1 of the counts of all labels together; 0 without true positives. */
double ft_micro_f1(const ft_label_counts *counts, size_t labels);

#pragma GCC visibility pop

#endif
