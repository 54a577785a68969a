/*
 * resize.c - resize images bit-identically to Pillow.
 *
 * Models are trained on images resized by Pillow, so its results are reproduced to the bit: an
 * output pixel is a weighted sum of the pixels around its position, over the filter's support at
 * the coarser of both scales; columns first, rounded to 8 bits, then rows. Weights are integers in
 * units of 2^-22. (Pillow 13 may process rows first: single samples then differ by one.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/image.h"

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Filters ------------------------------------------------------------------------------ */

static double bilinear(double x)
{
    return fmax(1.0 - fabs(x), 0.0);
}

/* Keys' cubic with a = -1/2. */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double sinc(double x)
{
    const double pi = 3.14159265358979323846;
    return x == 0.0 ? 1.0 : ft_math_sin(x * pi) / (x * pi);
}

static double lanczos(double x)
{
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

static const struct {
    double (*weight)(double);
    double support;
} filters[] = {
    [FT_RESAMPLE_LANCZOS] = { lanczos, 3.0 },
    [FT_RESAMPLE_BILINEAR] = { bilinear, 1.0 },
    [FT_RESAMPLE_BICUBIC] = { bicubic, 2.0 },
};

/* ---- Weights ------------------------------------------------------------------------------ */

enum { WEIGHT_BITS = 22 };

/* Along one axis: output i is the sum over k of weight[i * max_inputs + k] * input[first[i] + k].
 */
typedef struct axis {
    size_t from, to, max_inputs; /* input size, output size, maximum number of inputs per output */
    size_t *first, *count;     /* [to] */
    int32_t *weight;           /* [to, most] */
} axis;

static void axis_fini(axis *a)
{
    free(a->first);
    free(a->count);
    free(a->weight);
}

/* Compute the inputs of output i and their weights. */
static void compute_weights(axis *a, size_t i, ft_resample filter, double *float_weights)
{
    double scale = (double) a->from / (double) a->to, filter_scale = fmax(scale, 1.0), sum = 0.0;
    double radius = filters[filter].support * filter_scale, center = ((double) i + 0.5) * scale;
    double low = center - radius + 0.5, high = fmin(center + radius + 0.5, (double) a->from);
    a->first[i] = low > 0.0 ? (size_t) low : 0;
    a->count[i] = (size_t) high - a->first[i];
    for (size_t k = 0; k < a->count[i]; k++) {
        double distance = (double) (a->first[i] + k) - center + 0.5;
        float_weights[k] = filters[filter].weight(distance * (1.0 / filter_scale));
        sum += float_weights[k];
    }
    for (size_t k = 0; k < a->count[i]; k++) {
        double normalized = sum != 0.0 ? float_weights[k] / sum : float_weights[k];
        a->weight[i * a->max_inputs + k] =
            (int32_t) (normalized * (1 << WEIGHT_BITS) +
                       (normalized < 0.0 ? -0.5 : 0.5)); /* the cast truncates */
    }
}

static ft_status axis_init(axis *a, size_t from, size_t to, ft_resample filter, ft_error *err)
{
    double filter_scale = fmax((double) from / (double) to, 1.0);
    *a = (axis){ from, to,   (size_t) ceil(filters[filter].support * filter_scale) * 2 + 1,
                 NULL, NULL, NULL };
    size_t weights;
    double *float_weights = ft_calloc(a->max_inputs, sizeof *float_weights);
    a->first = ft_calloc(to, sizeof *a->first);
    a->count = ft_calloc(to, sizeof *a->count);
    a->weight =
        ft_checked_mul(to, a->max_inputs, &weights) ? ft_calloc(weights, sizeof *a->weight) : NULL;
    bool ok = float_weights != NULL && a->first != NULL && a->count != NULL && a->weight != NULL;
    for (size_t i = 0; i < to && ok; i++)
        compute_weights(a, i, filter, float_weights);
    free(float_weights);
    return ok ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory to resize an image");
}

/* ---- Sums --------------------------------------------------------------------------------- */

/* A weighted sum of samples `step` bytes apart, rounded and clamped to 8 bits. */
static uint8_t weighted_sum(const uint8_t *in, size_t step, const int32_t *weight, size_t count)
{
    int32_t sum = 1 << (WEIGHT_BITS - 1);
    for (size_t k = 0; k < count; k++)
        sum += in[k * step] * weight[k];
    sum >>= WEIGHT_BITS;
    return (uint8_t) (sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_columns(ft_image *out, const ft_image *in, const axis *a)
{
    for (size_t y = 0; y < out->height; y++)
        for (size_t x = 0; x < out->width; x++)
            for (size_t c = 0; c < 3; c++)
                out->rgb[(y * out->width + x) * 3 + c] =
                    weighted_sum(in->rgb + (y * in->width + a->first[x]) * 3 + c, 3,
                                 a->weight + x * a->max_inputs, a->count[x]);
}

static void resize_rows(ft_image *out, const ft_image *in, const axis *a)
{
    size_t line = 3 * in->width;
    for (size_t y = 0; y < out->height; y++)
        for (size_t i = 0; i < line; i++)
            out->rgb[y * line + i] = weighted_sum(in->rgb + a->first[y] * line + i, line,
                                                  a->weight + y * a->max_inputs, a->count[y]);
}

/* ------------------------------------------------------------------------------------------- */

static ft_status alloc_image(ft_image *out, size_t width, size_t height, ft_error *err)
{
    size_t pixels;
    *out = (ft_image){ width, height, NULL };
    if (ft_checked_mul(width, height, &pixels))
        out->rgb = ft_calloc(pixels, 3);
    return out->rgb != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for an image of %zu x %zu", width, height);
}

/* Resize along one axis; copy if the size is unchanged. */
static ft_status resize_along(ft_image *out, const ft_image *in, bool rows, size_t size,
                              ft_resample filter, ft_error *err)
{
    axis a;
    FT_TRY(alloc_image(out, rows ? in->width : size, rows ? size : in->height, err));
    if (size == (rows ? in->height : in->width)) {
        memcpy(out->rgb, in->rgb, in->width * in->height * 3);
        return FT_OK;
    }
    ft_status status = axis_init(&a, rows ? in->height : in->width, size, filter, err);
    if (status == FT_OK)
        (rows ? resize_rows : resize_columns)(out, in, &a);
    axis_fini(&a);
    return status;
}

ft_status ft_image_resize(ft_image *out, const ft_image *image, size_t width, size_t height,
                          ft_resample filter, ft_error *err)
{
    ft_image column_resized;
    *out = (ft_image){ 0 };
    ft_status status = resize_along(&column_resized, image, false, width, filter, err);
    if (status == FT_OK)
        status = resize_along(out, &column_resized, true, height, filter, err);
    ft_image_fini(&column_resized);
    if (status != FT_OK)
        ft_image_fini(out);
    return status;
}
