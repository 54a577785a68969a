/*
 * row_loss.h - the loss of one row of an output: loss.h says which model has which.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_ROW_LOSS_H
#define FT_CALIBRATE_MIXED_ROW_LOSS_H

#include "calibrate/mixed/loss.h"

/* Of a row b [n] against the float row a [n]; log_sum is ft_log_sum_of_row(a), or 0 if unused. */
typedef double ft_row_loss(const float *a, double log_sum, const float *b, size_t n);

/* That of the outputs of a model of this kind, and the one that uses log_sum. */
ft_row_loss *ft_row_loss_of(ft_loss_kind kind, const ft_model *model);
double ft_softmax_loss(const float *a, double log_sum, const float *b, size_t n);

/* log(sum(exp(x))) of x [n]. */
double ft_log_sum_of_row(const float *x, size_t n);

#endif
