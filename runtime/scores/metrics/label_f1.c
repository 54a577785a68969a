/*
 * label_f1.c - F1 from counts: 2 * right / (predicted + expected).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/scores/metrics/label_f1.h"

#include <math.h>

double ft_label_f1(const ft_label_counts *counts)
{
    size_t occurrences = counts->predicted + counts->expected;
    return occurrences == 0 ? 0.0 : 2.0 * (double) counts->right / (double) occurrences;
}

double ft_macro_f1(const ft_label_counts *counts, size_t labels)
{
    double sum = 0.0, occurring = 0.0;
    for (size_t i = 0; i < labels; i++) {
        if (counts[i].predicted + counts[i].expected == 0)
            continue;
        sum += ft_label_f1(&counts[i]);
        occurring += 1.0;
    }
    return occurring == 0.0 ? (double) NAN : sum / occurring;
}

double ft_mean_label_f1(const ft_label_counts *counts, size_t labels)
{
    double sum = 0.0;
    for (size_t i = 0; i < labels; i++)
        sum += ft_label_f1(&counts[i]);
    return sum / (double) labels;
}

double ft_micro_f1(const ft_label_counts *counts, size_t labels)
{
    ft_label_counts sum = { 0 };
    for (size_t i = 0; i < labels; i++) {
        sum.predicted += counts[i].predicted;
        sum.expected += counts[i].expected;
        sum.right += counts[i].right;
    }
    return ft_label_f1(&sum);
}
