/*
 * label_f1.h - F1 of each label and their macro average, as scikit-learn's f1_score computes them.
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

/* The mean F1 of the labels that were predicted or expected at least once; NaN if none was. */
double ft_macro_f1(const ft_label_counts *counts, size_t labels);

#pragma GCC visibility pop

#endif
