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
    return x == 0.0 ? 1.0 : sin(x * pi) / (x * pi);
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

enum { BITS = 22 };

/* Along one axis: output i is the sum over k of weight[i * max_taps + k] * input[first[i] + k]. */
typedef struct axis {
    size_t from, to, most; /* input size, output size, maximum number of inputs per output */
    size_t *first, *count; /* [to] */
    int32_t *weight;       /* [to, most] */
} axis;

static void axis_fini(axis *a)
{
    free(a->first);
    free(a->count);
    free(a->weight);
}

/* Compute the inputs of output i and their weights. */
static void weigh(axis *a, size_t i, ft_resample how, double *real)
{
    double scale = (double) a->from / (double) a->to, wide = fmax(scale, 1.0), sum = 0.0;
    double reach = filters[how].support * wide, center = ((double) i + 0.5) * scale;
    double low = center - reach + 0.5, high = fmin(center + reach + 0.5, (double) a->from);
    a->first[i] = low > 0.0 ? (size_t) low : 0;
    a->count[i] = (size_t) high - a->first[i];
    for (size_t k = 0; k < a->count[i]; k++) {
        double place = (double) (a->first[i] + k) - center + 0.5;
        real[k] = filters[how].weight(place * (1.0 / wide));
        sum += real[k];
    }
    for (size_t k = 0; k < a->count[i]; k++) {
        double part = sum != 0.0 ? real[k] / sum : real[k];
        a->weight[i * a->most + k] =
            (int32_t) (part * (1 << BITS) + (part < 0.0 ? -0.5 : 0.5)); /* the cast truncates */
    }
}

static ft_status axis_init(axis *a, size_t from, size_t to, ft_resample how, ft_error *err)
{
    double wide = fmax((double) from / (double) to, 1.0);
    *a = (axis){ from, to, (size_t) ceil(filters[how].support * wide) * 2 + 1, NULL, NULL, NULL };
    size_t weights;
    double *real = ft_array(a->most, sizeof *real);
    a->first = ft_array(to, sizeof *a->first);
    a->count = ft_array(to, sizeof *a->count);
    a->weight = ft_mul(to, a->most, &weights) ? ft_array(weights, sizeof *a->weight) : NULL;
    bool fine = real != NULL && a->first != NULL && a->count != NULL && a->weight != NULL;
    for (size_t i = 0; i < to && fine; i++)
        weigh(a, i, how, real);
    free(real);
    return fine ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory to resize an image");
}

/* ---- Sums --------------------------------------------------------------------------------- */

/* A weighted sum of samples `step` bytes apart, rounded and clamped to 8 bits. */
static uint8_t sum_of(const uint8_t *in, size_t step, const int32_t *weight, size_t count)
{
    int32_t sum = 1 << (BITS - 1);
    for (size_t k = 0; k < count; k++)
        sum += in[k * step] * weight[k];
    sum >>= BITS;
    return (uint8_t) (sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_columns(ft_image *out, const ft_image *in, const axis *a)
{
    for (size_t y = 0; y < out->height; y++)
        for (size_t x = 0; x < out->width; x++)
            for (size_t c = 0; c < 3; c++)
                out->rgb[(y * out->width + x) * 3 + c] =
                    sum_of(in->rgb + (y * in->width + a->first[x]) * 3 + c, 3,
                           a->weight + x * a->most, a->count[x]);
}

static void resize_rows(ft_image *out, const ft_image *in, const axis *a)
{
    size_t line = 3 * in->width;
    for (size_t y = 0; y < out->height; y++)
        for (size_t i = 0; i < line; i++)
            out->rgb[y * line + i] = sum_of(in->rgb + a->first[y] * line + i, line,
                                            a->weight + y * a->most, a->count[y]);
}

/* ------------------------------------------------------------------------------------------- */

static ft_status room_for(ft_image *out, size_t width, size_t height, ft_error *err)
{
    size_t pixels;
    *out = (ft_image){ width, height, NULL };
    if (ft_mul(width, height, &pixels))
        out->rgb = ft_array(pixels, 3);
    return out->rgb != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "no memory for an image of %zu x %zu", width, height);
}

/* Resize along one axis; copy if the size is unchanged. */
static ft_status resize_along(ft_image *out, const ft_image *in, bool rows, size_t size,
                              ft_resample how, ft_error *err)
{
    axis a;
    FT_TRY(room_for(out, rows ? in->width : size, rows ? size : in->height, err));
    if (size == (rows ? in->height : in->width)) {
        memcpy(out->rgb, in->rgb, in->width * in->height * 3);
        return FT_OK;
    }
    ft_status status = axis_init(&a, rows ? in->height : in->width, size, how, err);
    if (status == FT_OK)
        (rows ? resize_rows : resize_columns)(out, in, &a);
    axis_fini(&a);
    return status;
}

ft_status ft_image_resize(ft_image *out, const ft_image *image, size_t width, size_t height,
                          ft_resample how, ft_error *err)
{
    ft_image narrow;
    *out = (ft_image){ 0 };
    ft_status status = resize_along(&narrow, image, false, width, how, err);
    if (status == FT_OK)
        status = resize_along(out, &narrow, true, height, how, err);
    ft_image_fini(&narrow);
    if (status != FT_OK)
        ft_image_fini(out);
    return status;
}
