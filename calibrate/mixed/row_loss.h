/*
 * row_loss.h - the loss of one row of an output: loss.h says which model has which.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_ROW_LOSS_H
#define FT_CALIBRATE_MIXED_ROW_LOSS_H

#include "calibrate/mixed/loss_kind.h"

/* A row of an output, and what it should be. */
typedef struct ft_compared_row {
    const float *real, *found; /* [n]: of the float model, and of the one that is judged */
    double log_sum;            /* ft_log_sum_of_row(real), of softmax outputs */
    size_t n;
    int32_t label; /* the right class or next token; -1: unknown */
} ft_compared_row;

typedef double ft_row_loss(const ft_compared_row *row);

/* The loss of a kind that applies to the model. */
ft_row_loss *ft_row_loss_of(ft_loss_kind kind, const ft_model *model);

/* log(sum(exp(x))) of x [n]. */
double ft_log_sum_of_row(const float *x, size_t n);

#endif
