/*
 * factors.h - SmoothQuant: factors that share the difficulty of quantization between the columns of
 * an input and those of the weights that read it.
 *
 * A column j of the input with size x_j and of the weights with maximum w_j gets the factor
 * x_j^alpha / w_j^(1 - alpha): with alpha 0 all weight columns become equally large, with alpha 1
 * all input columns. The size of an input column is its maximum, as in the paper, or its root mean
 * square, which is better where each row has its own scale.
 *
 * Smoothing overfits: once all columns are equally large, any of them may exceed the range on other
 * samples and be clipped. So one half of the samples sets the factors and ranges, and the other
 * half chooses alpha; with few samples, a smaller alpha or none wins.
 *
 * Source: Xiao et al. 2022, "SmoothQuant".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SMOOTH_FACTORS_H
#define FT_CALIBRATE_SMOOTH_FACTORS_H

#include "calibrate/smooth/pair_error.h"
#include "calibrate/stats/activation_stats.h"
#include "calibrate/weights/fold_ranges.h"

/* The size of an input column. */
typedef enum ft_column_size { FT_COLUMN_AMAX, FT_COLUMN_RMS, FT_NUM_COLUMN_SIZES } ft_column_size;

typedef struct ft_smooth_problem {
    const ft_scale_fold *fold;
    const ft_input_stats *input;     /* with halves */
    const ft_weight_matrix *weights; /* [count] matrices that read it */
    size_t count;
    bool per_token; /* inputs have one scale per row; else one for the tensor */
    double alpha;   /* use this one with FT_COLUMN_AMAX; negative: search */
    int threads;
} ft_smooth_problem;

typedef struct ft_smooth_choice {
    bool smooths; /* false: no factors are at least 1 % better than none; factors are then unset */
    ft_column_size size;
    double alpha, error, error_without;
} ft_smooth_choice;

/*
 * The best factors, [cols], all positive: alpha 0, 0.05, ... 1 and the column size with the least
 * ft_pair_error() of the second half, given those of the first; then the factors of both halves
 * together. No factors if there is no second half. A given alpha is used as it is.
 *
 * The largest factor is the inverse of the smallest. Columns that are folded into one row have
 * equal factors. Sizes below 1e-4 of their mean count as that, so that columns which are always
 * zero have factors, too. FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_smooth_search(float *factor, ft_smooth_choice *choice,
                                       const ft_smooth_problem *problem, ft_error *err);

#endif
