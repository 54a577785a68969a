/*
 * weight_error.c - the error of a quantized matrix, scale by scale, against what its format costs.
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

/* ---- Groups -------------------------------------------------------------------------------- */

/* Columns that share a scale, and the largest quantized value. */
static size_t group_size(const ft_weight *w)
{
    return w->scale == NULL && w->groupwise.group > 0 ? (size_t) w->groupwise.group : w->cols;
}

static float largest(const ft_weight *w)
{
    return ft_groupwise_bits(w->dtype) == 4 ? 7.0f : FT_QUANT_MAX;
}

/* The noise of nearest rounding of a group, with a symmetric scale from its extreme. */
static double nearest_noise(const ft_weight *w, const float *x, size_t count)
{
    double noise = 0.0;
    float amax = 0.0f;
    for (size_t i = 0; i < count; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    float scale = amax / largest(w), inverse = ft_inverse_scale(scale);
    for (size_t i = 0; i < count; i++) {
        double error = (double) x[i] - (double) (scale * rintf(x[i] * inverse));
        noise += error * error;
    }
    return noise;
}

static double to_db(double signal, double noise)
{
    return noise > 0.0 ? 10.0 * ft_math_log10(signal / noise) : HUGE_VAL;
}

/* Of a row or group; sums over its columns. */
typedef struct column_sums {
    double signal, noise; /* squares of the float values, and of the differences */
    double product;       /* of float and quantized values */
    double square;        /* of quantized values */
    double nearest;       /* the noise of nearest rounding */
} column_sums;

/* Of columns `first` to `end` - 1 of a float row, as they were quantized. */
static column_sums measure_group(const ft_weight *quantized, size_t row, size_t first, size_t end,
                                 const float *x)
{
    column_sums sums = { .nearest = nearest_noise(quantized, x + first, end - first) };
    for (size_t i = first; i < end; i++) {
        double value = (double) x[i], other = (double) quantized_element(quantized, row, i);
        sums.signal += value * value;
        sums.product += value * other;
        sums.square += other * other;
        sums.noise += (value - other) * (value - other);
    }
    return sums;
}

static void add_sums(column_sums *out, const column_sums *sums)
{
    out->signal += sums->signal;
    out->noise += sums->noise;
    out->product += sums->product;
    out->square += sums->square;
    out->nearest += sums->nearest;
}

/* The noise of the same integers with the scale that suits them best. */
static double rescaled_noise(const column_sums *sums)
{
    return sums->signal - (sums->square > 0.0 ? sums->product * sums->product / sums->square : 0.0);
}

/* ---- Matrices ------------------------------------------------------------------------------ */

typedef struct comparison {
    const ft_weight *real, *quantized;
    const ft_weight_rescaling *rescaling;
    float *x;             /* [cols] a float row as it was quantized */
    double signal, noise; /* of all rows */
    double most;          /* the loss of the worst group so far */
} comparison;

static void load_row(comparison *c, size_t row)
{
    const float *rows = c->rescaling->row, *cols = c->rescaling->col;
    for (size_t i = 0; i < c->real->cols; i++) {
        c->x[i] = real_element(c->real, row, i);
        if (cols != NULL)
            c->x[i] *= cols[i];
        if (rows != NULL)
            c->x[i] /= rows[row];
    }
}

/*
 * Keep the error of columns `first` to `end` - 1 if it is the worst one.  `best` is the noise that
 * they could have; F16 scales leave 2^-22 of the signal.  A row of zeros that stays zero loses
 * nothing.
 */
static void judge(ft_weight_error *out, comparison *c, const column_sums *sums, double best,
                  size_t row, size_t first, size_t end)
{
    double floored = fmin(fmax(best, sums->signal * 0x1p-22), sums->noise);
    double loss = sums->noise > 0.0 ? to_db(sums->noise, floored) : 0.0;
    if (loss <= c->most)
        return;
    c->most = loss;
    out->worst_row = row;
    out->first_col = first;
    out->end_col = end;
    out->is_row = first == 0 && end == c->real->cols;
    out->group_db = to_db(sums->signal, sums->noise);
    out->best_db = to_db(sums->signal, floored);
    out->factor = sums->signal > 0.0 ? sums->product / sums->signal : 1.0;
}

static void measure_row(ft_weight_error *out, comparison *c, size_t row)
{
    size_t cols = c->real->cols, group = group_size(c->quantized);
    column_sums all = { 0 };
    load_row(c, row);
    for (size_t first = 0; first < cols; first += group) {
        size_t end = ft_min_size(first + group, cols);
        column_sums sums = measure_group(c->quantized, row, first, end, c->x);
        judge(out, c, &sums, fmax(sums.nearest, rescaled_noise(&sums)), row, first, end);
        add_sums(&all, &sums);
    }
    judge(out, c, &all, all.nearest, row, 0, cols);
    c->signal += all.signal;
    c->noise += all.noise;
}

static void measure(ft_weight_error *out, comparison *c)
{
    for (size_t row = 0; row < c->real->rows; row++)
        measure_row(out, c, row);
    out->sqnr_db = to_db(c->signal, c->noise);
}

ft_status ft_weight_error_measure(ft_weight_error *out, const ft_weight *real,
                                  const ft_weight *quantized, const ft_weight_rescaling *rescaling,
                                  ft_error *err)
{
    comparison c = { .real = real, .quantized = quantized, .rescaling = rescaling, .most = -1.0 };
    *out = (ft_weight_error){ .factor = 1.0 };
    if (real->rows != quantized->rows || real->cols != quantized->cols)
        return ft_fail(err, FT_ESHAPE, "%s: %zu x %zu in one artifact, %zu x %zu in the other",
                       real->name, real->rows, real->cols, quantized->rows, quantized->cols);
    c.x = ft_calloc(real->cols, sizeof *c.x);
    if (c.x == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a row", real->name);
    measure(out, &c);
    free(c.x);
    return FT_OK;
}
