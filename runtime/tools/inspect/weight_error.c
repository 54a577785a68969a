/*
 * weight_error.c - the error of a quantized matrix, row by row, against what its format costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/inspect/weight_error.h"

#include "kernels/half.h"
#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <stdlib.h>

bool ft_weight_is_quantized(const ft_weight *weight)
{
    return weight->scale != NULL || weight->groupwise.scale != NULL;
}

/* ---- Elements ------------------------------------------------------------------------------ */

static float real_element(const ft_weight *w, size_t row, size_t col)
{
    size_t i = row * w->cols + col;
    switch (w->dtype) {
    case FT_F16:
        return ft_float_from_f16(((const uint16_t *) w->data)[i]);
    case FT_BF16:
        return ft_float_from_bf16(((const uint16_t *) w->data)[i]);
    default:
        return ((const float *) w->data)[i];
    }
}

static float quantized_element(const ft_weight *w, size_t row, size_t col)
{
    if (w->scale != NULL) {
        size_t i = ft_offset(w->layout, row, col, w->rows, w->cols);
        return w->scale[row] * (float) ((const int8_t *) w->data)[i];
    }
    const ft_groupwise *g = &w->groupwise;
    int bits = ft_groupwise_bits(w->dtype);
    size_t i = ft_groupwise_scale_index(g, row, col, w->rows);
    int32_t q = (int32_t) ft_panel_value(w->data, row, col, w->cols, bits);
    return ft_float_from_f16(g->scale[i]) * (float) (q - ft_groupwise_zero_point(g, i, bits));
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* Columns that share a scale, and the largest quantized value. */
static size_t group_size(const ft_weight *w)
{
    return w->scale == NULL && w->groupwise.group > 0 ? (size_t) w->groupwise.group : w->cols;
}

static float largest(const ft_weight *w)
{
    return ft_groupwise_bits(w->dtype) == 4 ? 7.0f : FT_QUANT_MAX;
}

/* The noise of nearest rounding, with a symmetric scale from the extreme of each group. */
static double nearest_noise(const ft_weight *w, const float *row)
{
    double noise = 0.0;
    size_t group = group_size(w);
    for (size_t first = 0; first < w->cols; first += group) {
        size_t end = ft_min_size(first + group, w->cols);
        float amax = 0.0f;
        for (size_t i = first; i < end; i++)
            amax = fmaxf(amax, fabsf(row[i]));
        float scale = amax / largest(w), inverse = ft_inverse_scale(scale);
        for (size_t i = first; i < end; i++) {
            double error = (double) row[i] - (double) (scale * rintf(row[i] * inverse));
            noise += error * error;
        }
    }
    return noise;
}

static double to_db(double signal, double noise)
{
    return noise > 0.0 ? 10.0 * ft_math_log10(signal / noise) : HUGE_VAL;
}

typedef struct row_error {
    double signal, noise, product, nearest;
} row_error;

static row_error measure_row(const ft_weight *real, const ft_weight *quantized,
                             const float *smoothing, size_t row, float *x)
{
    row_error e = { 0 };
    for (size_t i = 0; i < real->cols; i++) {
        x[i] = real_element(real, row, i);
        if (smoothing != NULL)
            x[i] /= smoothing[i];
        double value = (double) x[i], other = (double) quantized_element(quantized, row, i);
        e.signal += value * value;
        e.product += value * other;
        e.noise += (value - other) * (value - other);
    }
    e.nearest = fmin(nearest_noise(quantized, x), e.noise);
    return e;
}

/* A row of zeros that stays zero loses nothing. */
static double loss_of(const row_error *e)
{
    return e->noise > 0.0 ? to_db(e->noise, e->nearest) : 0.0;
}

static void measure(ft_weight_error *out, const ft_weight *real, const ft_weight *quantized,
                    const float *smoothing, float *x)
{
    double signal = 0.0, noise = 0.0, most = -1.0;
    for (size_t row = 0; row < real->rows; row++) {
        row_error e = measure_row(real, quantized, smoothing, row, x);
        signal += e.signal;
        noise += e.noise;
        if (loss_of(&e) <= most)
            continue;
        most = loss_of(&e);
        out->worst_row = row;
        out->row_db = to_db(e.signal, e.noise);
        out->best_db = to_db(e.signal, e.nearest);
        out->factor = e.signal > 0.0 ? e.product / e.signal : 1.0;
    }
    out->sqnr_db = to_db(signal, noise);
}

ft_status ft_weight_error_measure(ft_weight_error *out, const ft_weight *real,
                                  const ft_weight *quantized, const float *smoothing, ft_error *err)
{
    *out = (ft_weight_error){ .factor = 1.0 };
    if (real->rows != quantized->rows || real->cols != quantized->cols)
        return ft_fail(err, FT_ESHAPE, "%s: %zu x %zu in one artifact, %zu x %zu in the other",
                       real->name, real->rows, real->cols, quantized->rows, quantized->cols);
    float *x = ft_calloc(real->cols, sizeof *x);
    if (x == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a row", real->name);
    measure(out, real, quantized, smoothing, x);
    free(x);
    return FT_OK;
}
