/*
 * awq.c - AWQ: finds the factors by which weight columns are scaled before quantization.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/awq.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POWERS = 20 };

void ft_importance(float *out, const ft_sums *input)
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
static void find_magnitudes(double *out, double *sum, size_t *sharing, const ft_awq *what)
{
    size_t cols = what->input->cols;
    double total = 0.0;
    for (size_t i = 0; i < cols; i++) {
        sum[ft_fold_row(what->fold, i)] += what->input->magnitude[i];
        sharing[ft_fold_row(what->fold, i)]++;
        total += what->input->magnitude[i];
    }
    for (size_t i = 0; i < cols; i++) {
        size_t row = ft_fold_row(what->fold, i);
        double mean = sum[row] / (double) sharing[row] / (total / (double) cols);
        out[i] = mean > 1e-4 ? mean : 1e-4; /* also for inputs that are always 0 */
    }
}

/*
 * A power of the magnitudes, normalized so that the largest factor is the inverse of the smallest.
 */
static void make_factors(float *factor, const double *magnitude, size_t cols, double power)
{
    double least = HUGE_VAL, most = 0.0;
    for (size_t i = 0; i < cols; i++) {
        double f = pow(magnitude[i], power);
        least = f < least ? f : least;
        most = f > most ? f : most;
    }
    double middle = sqrt(least * most);
    for (size_t i = 0; i < cols; i++)
        factor[i] = (float) (pow(magnitude[i], power) / middle);
}

/* ---- Errors ------------------------------------------------------------------------------ */

/* Buffers of one trial: the rescaled statistics and values derived from them. */
typedef struct trial {
    ft_sums input;
    float *factor, *importance;
    double *magnitude, *sum;
    size_t *sharing;
} trial;

static ft_status trial_init(trial *t, size_t cols, ft_error *err)
{
    *t = (trial){ .input.cols = cols };
    t->input.magnitude = ft_array(cols, sizeof(double));
    t->input.square = ft_array(cols, sizeof(double));
    t->input.moments = ft_array(cols * cols, sizeof(double));
    t->factor = ft_array(cols, sizeof(float));
    t->importance = ft_array(cols, sizeof(float));
    t->magnitude = ft_array(cols, sizeof(double));
    t->sum = ft_array(cols, sizeof(double));
    t->sharing = ft_array(cols, sizeof(size_t));
    bool fine = t->input.magnitude != NULL && t->input.square != NULL && t->input.moments != NULL &&
                t->factor != NULL && t->importance != NULL && t->magnitude != NULL &&
                t->sum != NULL && t->sharing != NULL;
    return fine ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu factors", cols);
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
    free(t->sharing);
}

/* The square output error of one matrix: it is quantized, measured and discarded. */
static ft_status cost_of(double *out, const ft_awq *what, const trial *t, size_t index,
                         ft_error *err)
{
    ft_weights weights = what->weights[index];
    ft_blocks_how how = what->how[index];
    ft_blocks_stream stream;
    char bytes[4096];
    size_t got = 1;
    weights.col_factor = t->factor;
    how.moments = t->input.moments;
    how.importance = what->weighted ? t->importance : NULL;
    ft_status status = ft_blocks_stream_init(&stream, &weights, &how, what->threads, err);
    while (status == FT_OK && got > 0)
        status = ft_blocks_stream_read(&stream, bytes, sizeof bytes, &got, err);
    *out = stream.cost.out_noise;
    ft_blocks_stream_fini(&stream);
    return status;
}

static ft_status try_power(double *error, trial *t, const ft_awq *what, double power, ft_error *err)
{
    size_t cols = what->input->cols;
    *error = 0.0;
    make_factors(t->factor, t->magnitude, cols, power);
    memcpy(t->input.magnitude, what->input->magnitude, cols * sizeof(double));
    memcpy(t->input.square, what->input->square, cols * sizeof(double));
    memcpy(t->input.moments, what->input->moments, cols * cols * sizeof(double));
    ft_inputs_divide(&t->input, t->factor);
    ft_importance(t->importance, &t->input);
    for (size_t i = 0; i < what->count; i++) {
        double cost;
        FT_TRY(cost_of(&cost, what, t, i, err));
        *error += cost;
    }
    return FT_OK;
}

static ft_status search(float *factor, ft_awq_choice *out, trial *t, const ft_awq *what,
                        ft_error *err)
{
    find_magnitudes(t->magnitude, t->sum, t->sharing, what);
    for (int i = 0; i < POWERS; i++) {
        double power = (double) i / POWERS, error;
        FT_TRY(try_power(&error, t, what, power, err));
        if (i == 0)
            out->error_without = error;
        if (i > 0 && !(error < out->error))
            continue;
        out->error = error;
        out->power = power;
        memcpy(factor, t->factor, what->input->cols * sizeof *factor);
    }
    return FT_OK;
}

ft_status ft_awq_search(float *factor, ft_awq_choice *out, const ft_awq *what, ft_error *err)
{
    trial t;
    ft_status status = trial_init(&t, what->input->cols, err);
    if (status == FT_OK)
        status = search(factor, out, &t, what, err);
    trial_fini(&t);
    return status;
}
