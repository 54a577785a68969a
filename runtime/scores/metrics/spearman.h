/*
 * spearman.h - Spearman's rank correlation, as scipy.stats.spearmanr computes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SCORES_METRICS_SPEARMAN_H
#define FT_RUNTIME_SCORES_METRICS_SPEARMAN_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * The correlation of two lists of `count` finite values, -1 to 1; equal values share the mean of
 * their ranks. NaN if all values of a list are equal. False when out of memory.
 */
FT_MUST_USE bool ft_spearman(const double *x, const double *y, size_t count, double *correlation);

#pragma GCC visibility pop

#endif
