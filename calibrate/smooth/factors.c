/*
 * factors.c - SmoothQuant: factors that share the difficulty of quantization between the columns of
 * an input and those of the weights that read it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/smooth/factors.h"

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_ALPHAS = 20 };

#define MIN_GAIN 0.01 /* less is within the error of the kept rows */

/* ---- Column sizes ------------------------------------------------------------------------- */

/* Sizes of the elements or rows that factors are folded into, relative to their mean. */
typedef struct column_sizes {
    size_t count;
    double *input, *weights; /* [count] */
} column_sizes;

static double input_size(const ft_half_stats half[2], int halves, ft_column_size size, size_t col)
{
    double amax = 0.0, square = 0.0;
    for (int i = 0; i < halves; i++) {
        amax = fmax(amax, (double) half[i].amax[col]);
        square += half[i].square[col];
    }
    return size == FT_COLUMN_AMAX ? amax : sqrt(square);
}

/* Relative to their mean, and not too close to zero. */
static void normalize(double *sizes, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += sizes[i];
    double mean = sum > 0.0 ? sum / (double) count : 1.0;
    for (size_t i = 0; i < count; i++)
        sizes[i] = fmax(sizes[i] / mean, 1e-4);
}

/* Measures the input in the first half, or in both. */
static void measure_input(column_sizes *s, const ft_smooth_problem *problem, int halves,
                          ft_column_size size)
{
    memset(s->input, 0, s->count * sizeof *s->input);
    for (size_t col = 0; col < problem->input->cols; col++) {
        double *at = &s->input[ft_scale_fold_row(problem->fold, col)];
        *at = fmax(*at, input_size(problem->input->half, halves, size, col));
    }
    normalize(s->input, s->count);
}

static void measure_weights(column_sizes *s, const ft_smooth_problem *problem, float *row)
{
    for (size_t k = 0; k < problem->count; k++) {
        const ft_weight_matrix *weights = &problem->weights[k];
        for (size_t i = 0; i < weights->rows; i++) {
            ft_weight_matrix_load(row, weights, i, 0, weights->cols);
            for (size_t col = 0; col < weights->cols; col++) {
                double *at = &s->weights[ft_scale_fold_row(problem->fold, col)];
                *at = fmax(*at, (double) fabsf(row[col]));
            }
        }
    }
    normalize(s->weights, s->count);
}

static bool column_sizes_init(column_sizes *s, const ft_smooth_problem *problem)
{
    size_t cols = problem->input->cols;
    float *row = ft_calloc(cols, sizeof *row);
    s->count = ft_scale_fold_row(problem->fold, cols - 1) + 1;
    s->input = ft_calloc(s->count, sizeof *s->input);
    s->weights = ft_calloc(s->count, sizeof *s->weights);
    bool success = row != NULL && s->input != NULL && s->weights != NULL;
    if (success)
        measure_weights(s, problem, row);
    free(row);
    return success;
}

static void column_sizes_fini(column_sizes *s)
{
    free(s->input);
    free(s->weights);
}

/* ---- Factors ------------------------------------------------------------------------------ */

static double factor_of(const column_sizes *s, size_t i, double alpha)
{
    return ft_math_pow(s->input[i], alpha) / ft_math_pow(s->weights[i], 1.0 - alpha);
}

static void compute_factors(float *factor, const column_sizes *s, const ft_smooth_problem *problem,
                            double alpha)
{
    double least = HUGE_VAL, most = 0.0;
    for (size_t i = 0; i < s->count; i++) {
        least = fmin(least, factor_of(s, i, alpha));
        most = fmax(most, factor_of(s, i, alpha));
    }
    double middle = sqrt(least * most);
    for (size_t col = 0; col < problem->input->cols; col++) {
        size_t i = ft_scale_fold_row(problem->fold, col);
        factor[col] = (float) (factor_of(s, i, alpha) / middle);
    }
}

/* ---- Search ------------------------------------------------------------------------------- */

/* The error of the second half without factors: all are 1. */
static double error_without(ft_pair *pair, float *factor)
{
    for (size_t i = 0; i < pair->cols; i++)
        factor[i] = 1.0f;
    return ft_pair_error(pair, factor);
}

/* Tries all alphas with one column size; the first half determines the factors. */
static void try_alphas(ft_smooth_choice *choice, ft_pair *pair, float *factor, column_sizes *sizes,
                       const ft_smooth_problem *problem, ft_column_size size)
{
    measure_input(sizes, problem, 1, size);
    for (int i = 0; i <= N_ALPHAS; i++) {
        double alpha = (double) i / N_ALPHAS;
        compute_factors(factor, sizes, problem, alpha);
        double error = ft_pair_error(pair, factor);
        if (error < choice->error)
            *choice = (ft_smooth_choice){ true, size, alpha, error, choice->error_without };
    }
}

static void search_alpha(ft_smooth_choice *choice, ft_pair *pair, float *factor,
                         column_sizes *sizes, const ft_smooth_problem *problem)
{
    double without = choice->error_without = error_without(pair, factor);
    choice->error = without * (1.0 - MIN_GAIN);
    for (int size = 0; size < FT_NUM_COLUMN_SIZES; size++)
        try_alphas(choice, pair, factor, sizes, problem, (ft_column_size) size);
    if (!choice->smooths)
        choice->error = without;
}

static ft_status choose_alpha(ft_smooth_choice *choice, float *factor, column_sizes *sizes,
                              const ft_smooth_problem *problem, ft_error *err)
{
    const ft_input_stats *input = problem->input;
    ft_pair pair = { .fit = &input->half[0],
                     .judge = &input->half[1],
                     .cols = input->cols,
                     .weights = problem->weights,
                     .count = problem->count,
                     .per_token = problem->per_token };
    ft_status status = ft_pair_init(&pair, problem->threads, err);
    if (status == FT_OK)
        search_alpha(choice, &pair, factor, sizes, problem);
    ft_pair_fini(&pair);
    return status;
}

ft_status ft_smooth_search(float *factor, ft_smooth_choice *choice,
                           const ft_smooth_problem *problem, ft_error *err)
{
    column_sizes sizes = { 0 };
    bool is_given = problem->alpha >= 0.0;
    *choice = (ft_smooth_choice){ .smooths = is_given, .alpha = problem->alpha };
    ft_status status = column_sizes_init(&sizes, problem)
                           ? FT_OK
                           : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu factors",
                                     problem->input->name, problem->input->cols);
    if (status == FT_OK && !is_given && problem->input->half[1].rows > 0)
        status = choose_alpha(choice, factor, &sizes, problem, err);
    if (status == FT_OK && choice->smooths) {
        measure_input(&sizes, problem, 2, choice->size);
        compute_factors(factor, &sizes, problem, choice->alpha);
    }
    column_sizes_fini(&sizes);
    return status;
}
