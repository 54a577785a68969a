/*
 * awq.h - find by what factors columns are best multiplied before they become codes.
 *
 * Columns with large inputs matter more.  Their factors are a power of the inputs' mean magnitude,
 * and which power loses least is tried out: 0, which changes nothing, 0.05, ... 0.95.  What is
 * compared is the square error of the results over the sample data, which follows from the sums of
 * products of inputs without running the model again.
 *
 * Source: Lin et al. 2023, "AWQ".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_AWQ_H
#define FT_CALIBRATE_WEIGHTS_AWQ_H

#include "calibrate/weights/fold_ranges.h"
#include "calibrate/weights/activation_stats.h"

/* Linears with one input, for which factors are searched. */
typedef struct ft_awq {
    const ft_fold *fold;
    const ft_sums *input;      /* with its moments, not divided yet */
    const ft_weights *weights; /* [count] */
    const ft_blocks_how *how;  /* [count]: bits and groups; importance and moments are set here */
    size_t count;
    bool weighted; /* grids are chosen by importance */
    int threads;
} ft_awq;

/*
 * The best factors, [input->cols], and what they and none at all cost.  *power is 0 where nothing
 * is better than no factors.  Errors: FT_ENOMEM; those of weights that cannot be codes.
 */
typedef struct ft_awq_choice {
    double power, error, error_without;
} ft_awq_choice;

FT_MUST_USE ft_status ft_awq_search(float *factor, ft_awq_choice *out, const ft_awq *what,
                                    ft_error *err);

/* The importance of columns to grids: their mean square, over the mean of those. */
void ft_importance(float *out, const ft_sums *input);

#endif
