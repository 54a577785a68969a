/*
 * awq.c - AWQ: finds the factors by which weight columns are scaled before quantization.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/awq.h"

#include "kernels/math/elementary.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_POWERS = 20 };

void ft_column_importance(float *out, const ft_input_stats *input)
{
    double sum = 0.0;
    for (size_t i = 0; i < input->cols; i++)
        sum += input->square[i];
    double mean = sum > 0.0 ? sum / (double) input->cols : 1.0;
    for (size_t i = 0; i < input->cols; i++)
        out[i] = (float) (input->square[i] / mean);
}

/* ---- Factors ----------------------------------------------------------------------------- */

/*
 * Mean magnitudes relative to the average of all columns; columns that are folded into one row
 * share a mean.
 */
static void mean_magnitudes(double *out, double *sum, size_t *n_sharing, const ft_awq *problem)
{
    size_t cols = problem->input->cols;
    double total = 0.0;
    for (size_t i = 0; i < cols; i++) {
        sum[ft_scale_fold_row(problem->fold, i)] += problem->input->magnitude[i];
        n_sharing[ft_scale_fold_row(problem->fold, i)]++;
        total += problem->input->magnitude[i];
    }
    for (size_t i = 0; i < cols; i++) {
        size_t row = ft_scale_fold_row(problem->fold, i);
        double mean = sum[row] / (double) n_sharing[row] / (total / (double) cols);
        out[i] = mean > 1e-4 ? mean : 1e-4; /* also for inputs that are always 0 */
    }
}

/*
 * A power of the magnitudes, normalized so that the largest factor is the inverse of the smallest.
 */
static void compute_factors(float *factor, const double *magnitude, size_t cols, double power)
{
    double min_factor = HUGE_VAL, max_factor = 0.0;
    for (size_t i = 0; i < cols; i++) {
        double f = ft_math_pow(magnitude[i], power);
        min_factor = f < min_factor ? f : min_factor;
        max_factor = f > max_factor ? f : max_factor;
    }
    double geometric_mean = sqrt(min_factor * max_factor);
    for (size_t i = 0; i < cols; i++)
        factor[i] = (float) (ft_math_pow(magnitude[i], power) / geometric_mean);
}

/* ---- Errors ------------------------------------------------------------------------------ */

/* Buffers of one trial: the rescaled statistics and values derived from them. */
typedef struct trial {
    ft_input_stats input;
    float *factor, *importance;
    double *magnitude, *sum;
    size_t *n_sharing;
} trial;

static ft_status trial_init(trial *t, size_t cols, ft_error *err)
{
    *t = (trial){ .input.cols = cols };
    t->input.magnitude = ft_calloc(cols, sizeof(double));
    t->input.square = ft_calloc(cols, sizeof(double));
    t->input.moments = ft_calloc(cols * cols, sizeof(double));
    t->factor = ft_calloc(cols, sizeof(float));
    t->importance = ft_calloc(cols, sizeof(float));
    t->magnitude = ft_calloc(cols, sizeof(double));
    t->sum = ft_calloc(cols, sizeof(double));
    t->n_sharing = ft_calloc(cols, sizeof(size_t));
    bool success = t->input.magnitude != NULL && t->input.square != NULL &&
                   t->input.moments != NULL && t->factor != NULL && t->importance != NULL &&
                   t->magnitude != NULL && t->sum != NULL && t->n_sharing != NULL;
    return success ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu factors", cols);
}

static void trial_fini(trial *t)
{
    free(t->input.magnitude);
    free(t->input.square);
    free(t->input.moments);
    free(t->factor);
    free(t->importance);
    free(t->magnitude);
    free(t->sum);
    free(t->n_sharing);
}

/* The square output error of one matrix: it is quantized, measured and discarded. */
static ft_status output_error(double *out, const ft_awq *problem, const trial *t, size_t index,
                              ft_error *err)
{
    ft_weight_matrix weights = problem->weights[index];
    ft_groupwise_options options = problem->options[index];
    ft_groupwise_stream stream;
    char bytes[4096];
    size_t n_read = 1;
    weights.col_factor = t->factor;
    options.moments = t->input.moments;
    options.importance = problem->use_importance ? t->importance : NULL;
    ft_status status = ft_groupwise_stream_init(&stream, &weights, &options, problem->threads, err);
    while (status == FT_OK && n_read > 0)
        status = ft_groupwise_stream_read(&stream, bytes, sizeof bytes, &n_read, err);
    *out = stream.error.out_noise;
    ft_groupwise_stream_fini(&stream);
    return status;
}

static ft_status try_power(double *error, trial *t, const ft_awq *problem, double power,
                           ft_error *err)
{
    size_t cols = problem->input->cols;
    *error = 0.0;
    compute_factors(t->factor, t->magnitude, cols, power);
    memcpy(t->input.magnitude, problem->input->magnitude, cols * sizeof(double));
    memcpy(t->input.square, problem->input->square, cols * sizeof(double));
    memcpy(t->input.moments, problem->input->moments, cols * cols * sizeof(double));
    ft_input_stats_rescale(&t->input, t->factor);
    ft_column_importance(t->importance, &t->input);
    for (size_t i = 0; i < problem->count; i++) {
        double matrix_error;
        FT_TRY(output_error(&matrix_error, problem, t, i, err));
        *error += matrix_error;
    }
    return FT_OK;
}

static ft_status grid_search(float *factor, ft_awq_result *out, trial *t, const ft_awq *problem,
                             ft_error *err)
{
    mean_magnitudes(t->magnitude, t->sum, t->n_sharing, problem);
    for (int i = 0; i < N_POWERS; i++) {
        double power = (double) i / N_POWERS, error;
        FT_TRY(try_power(&error, t, problem, power, err));
        if (i == 0)
            out->error_without = error;
        if (i > 0 && !(error < out->error))
            continue;
        out->error = error;
        out->power = power;
        memcpy(factor, t->factor, problem->input->cols * sizeof *factor);
    }
    return FT_OK;
}

ft_status ft_awq_search(float *factor, ft_awq_result *out, const ft_awq *problem, ft_error *err)
{
    trial t;
    ft_status status = trial_init(&t, problem->input->cols, err);
    if (status == FT_OK)
        status = grid_search(factor, out, &t, problem, err);
    trial_fini(&t);
    return status;
}
