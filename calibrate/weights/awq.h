/*
 * awq.h - AWQ: finds the factors by which weight columns are scaled before quantization.
 *
 * Columns with large inputs matter more. The factors are a power of the mean magnitude of the
 * inputs, and a grid search over 0 (no scaling), 0.05, ... 0.95 selects the power with the least
 * error. The error is the square error of the outputs over the calibration data, computed from the
 * second moments of the inputs without running the model again.
 *
 * Source: Lin et al. 2023, "AWQ".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_AWQ_H
#define FT_CALIBRATE_WEIGHTS_AWQ_H

#include "calibrate/weights/fold_ranges.h"
#include "calibrate/stats/activation_stats.h"

/* Linears that share one input. */
typedef struct ft_awq {
    const ft_scale_fold *fold;
    const ft_input_stats *input;     /* with second moments, not rescaled yet */
    const ft_weight_matrix *weights; /* [count] */
    const ft_groupwise_options
        *options; /* [count]: bits and groups; importance and moments are set here */
    size_t count;
    bool use_importance; /* grids are chosen with importance weights (imatrix) */
    int threads;
} ft_awq;

/*
 * The best factors, [input->cols], and the errors with them and without scaling. *power is 0 if no
 * factors are better than none. Errors: FT_ENOMEM; those of weights that cannot be quantized.
 */
typedef struct ft_awq_result {
    double power, error, error_without;
} ft_awq_result;

FT_MUST_USE ft_status ft_awq_search(float *factor, ft_awq_result *out, const ft_awq *problem,
                                    ft_error *err);

/* Importance of columns: their mean square, divided by the average over all columns. */
void ft_column_importance(float *out, const ft_input_stats *input);

#endif
