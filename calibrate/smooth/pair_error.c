/*
 * pair_error.c - the output error of linears whose weights and inputs are both quantized to int8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/smooth/pair_error.h"

#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_RANGES = 13 };

/* ---- Outputs ------------------------------------------------------------------------------ */

static size_t n_channels(const ft_weight_matrix *weights)
{
    return ft_min_size(weights->rows, FT_PAIR_MAX_CHANNELS);
}

/* out = a . b^T for a [m, k] and b [n, k]. */
static void multiply(const ft_pair *p, double *out, const float *a, size_t m, const float *b,
                     size_t n)
{
    memset(out, 0, m * n * sizeof *out);
    ft_linalg_dgemm(&p->linalg,
                    &(ft_dgemm){ .m = m,
                                 .n = n,
                                 .k = p->cols,
                                 .a = { .f32 = a, .row_stride = p->cols, .col_stride = 1 },
                                 .b = { .f32 = b, .row_stride = 1, .col_stride = p->cols },
                                 .c = out,
                                 .c_stride = n });
}

static bool compute_output(ft_pair *p, size_t index)
{
    const ft_weight_matrix *weights = &p->weights[index];
    size_t channels = n_channels(weights);
    float *w = p->w[index] = ft_calloc(channels * p->cols, sizeof *w);
    double *output = p->output[index] = ft_calloc(p->judge->rows * channels, sizeof *output);
    if (w == NULL || output == NULL)
        return false;
    for (size_t i = 0; i < channels; i++)
        ft_weight_matrix_load(w + i * p->cols, weights, i * weights->rows / channels, 0, p->cols);
    multiply(p, output, p->judge->x, p->judge->rows, w, channels);
    for (size_t i = 0; i < p->judge->rows * channels; i++)
        p->energy[index] += output[i] * output[i];
    return true;
}

ft_status ft_pair_init(ft_pair *p, int threads, ft_error *err)
{
    size_t channels = 0;
    for (size_t i = 0; i < p->count; i++)
        channels = ft_max_size(channels, n_channels(&p->weights[i]));
    FT_TRY(ft_linalg_init(&p->linalg, threads, err));
    p->w = ft_calloc(p->count, sizeof *p->w);
    p->output = ft_calloc(p->count, sizeof *p->output);
    p->energy = ft_calloc(p->count, sizeof *p->energy);
    p->x_q = ft_calloc(ft_max_size(p->fit->rows, p->judge->rows) * p->cols, sizeof *p->x_q);
    p->x_scale = ft_calloc(p->judge->rows, sizeof *p->x_scale);
    p->w_q = ft_calloc(channels * p->cols, sizeof *p->w_q);
    p->w_scale = ft_calloc(channels, sizeof *p->w_scale);
    p->product = ft_calloc(p->judge->rows * channels, sizeof *p->product);
    bool success = p->w != NULL && p->output != NULL && p->energy != NULL && p->x_q != NULL &&
                   p->x_scale != NULL && p->w_q != NULL && p->w_scale != NULL && p->product != NULL;
    for (size_t i = 0; i < p->count && success; i++)
        success = compute_output(p, i);
    return success ? FT_OK
                   : ft_fail(err, FT_ENOMEM, "no memory for %zu rows of %zu inputs", p->judge->rows,
                             p->cols);
}

void ft_pair_fini(ft_pair *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->w != NULL)
            free(p->w[i]);
        if (p->output != NULL)
            free(p->output[i]);
    }
    free(p->w);
    free(p->output);
    free(p->energy);
    free(p->x_q);
    free(p->x_scale);
    free(p->w_q);
    free(p->w_scale);
    free(p->product);
    *p = (ft_pair){ 0 };
}

/* ---- Quantization ------------------------------------------------------------------------- */

static float row_amax(const float *row, size_t cols)
{
    float amax = 0.0f;
    for (size_t i = 0; i < cols; i++)
        amax = fabsf(row[i]) > amax ? fabsf(row[i]) : amax;
    return amax;
}

/* Quantizes a row in place. */
static void quantize_row(float *row, size_t cols, float scale)
{
    float inverse = ft_inverse_scale(scale);
    for (size_t i = 0; i < cols; i++)
        row[i] = ft_quantize_to_float(row[i], inverse);
}

static double square_error(const float *x, size_t count, float scale)
{
    float inverse = ft_inverse_scale(scale);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        double error = (double) x[i] - (double) (scale * ft_quantize_to_float(x[i], inverse));
        sum += error * error;
    }
    return sum;
}

static void divide_columns(const ft_pair *p, const ft_half_stats *half, const float *factor)
{
    for (size_t row = 0; row < half->rows; row++)
        for (size_t i = 0; i < p->cols; i++)
            p->x_q[row * p->cols + i] = half->x[row * p->cols + i] / factor[i];
}

/* The scale of the tensor that suits the half `fit`. */
static float tensor_scale(const ft_pair *p, const float *factor)
{
    float amax = 0.0f, best_scale = 0.0f;
    double best = HUGE_VAL;
    divide_columns(p, p->fit, factor);
    for (size_t i = 0; i < p->cols; i++)
        amax = fmaxf(amax, p->fit->amax[i] / factor[i]);
    for (int i = 0; i < N_RANGES; i++) {
        float scale = ft_scale_from_amax((float) ((double) amax * ft_math_pow(2.0, -0.25 * i)));
        double error = square_error(p->x_q, p->fit->rows * p->cols, scale);
        if (error < best) {
            best = error;
            best_scale = scale;
        }
    }
    return best_scale;
}

static void quantize_input(ft_pair *p, const float *factor)
{
    float scale = p->per_token ? 0.0f : tensor_scale(p, factor);
    divide_columns(p, p->judge, factor);
    for (size_t row = 0; row < p->judge->rows; row++) {
        float *x = p->x_q + row * p->cols;
        p->x_scale[row] = p->per_token ? ft_scale_from_amax(row_amax(x, p->cols)) : scale;
        quantize_row(x, p->cols, p->x_scale[row]);
    }
}

static void quantize_weights(ft_pair *p, size_t index, const float *factor)
{
    size_t channels = n_channels(&p->weights[index]);
    for (size_t i = 0; i < channels; i++) {
        float *row = p->w_q + i * p->cols;
        for (size_t k = 0; k < p->cols; k++)
            row[k] = p->w[index][i * p->cols + k] * factor[k];
        p->w_scale[i] = ft_scale_from_amax(row_amax(row, p->cols));
        quantize_row(row, p->cols, p->w_scale[i]);
    }
}

/* ---- Error -------------------------------------------------------------------------------- */

static double output_error(ft_pair *p, size_t index, const float *factor)
{
    size_t channels = n_channels(&p->weights[index]);
    double sum = 0.0;
    quantize_weights(p, index, factor);
    multiply(p, p->product, p->x_q, p->judge->rows, p->w_q, channels);
    for (size_t row = 0; row < p->judge->rows; row++)
        for (size_t i = 0; i < channels; i++) {
            double scale = (double) p->x_scale[row] * (double) p->w_scale[i];
            double error =
                p->product[row * channels + i] * scale - p->output[index][row * channels + i];
            sum += error * error;
        }
    return p->energy[index] > 0.0 ? sum / p->energy[index] : 0.0;
}

double ft_pair_error(ft_pair *p, const float *factor)
{
    double sum = 0.0;
    quantize_input(p, factor);
    for (size_t i = 0; i < p->count; i++)
        sum += output_error(p, i, factor);
    return sum;
}
