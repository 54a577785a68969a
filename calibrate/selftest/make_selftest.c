/*
 * make_selftest.c - makes the self-test of a quantized artifact from a few samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/selftest/make_selftest.h"

#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/selftest/selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts --------------------------------------------------------------------------------- */

/* The columns of a row that are tokens, at most FT_SELFTEST_TOKENS; returns their number. */
static size_t find_tokens(size_t column[FT_SELFTEST_TOKENS], const int32_t *mask, size_t cols)
{
    size_t count = 0;
    for (size_t i = 0; i < cols && count < FT_SELFTEST_TOKENS; i++)
        if (mask[i] != 0)
            column[count++] = i;
    return count;
}

/* One matrix of token ids with its mask, of which `count` rows are taken. */
typedef struct token_rows {
    const int32_t *ids, *mask, *types;
    size_t rows, cols;
} token_rows;

static size_t longest_row(const token_rows *from)
{
    size_t column[FT_SELFTEST_TOKENS], longest = 1;
    for (size_t row = 0; row < from->rows; row++)
        longest =
            ft_max_size(longest, find_tokens(column, from->mask + row * from->cols, from->cols));
    return longest;
}

static ft_status add_tokens(ft_selftest *test, ft_selftest_tensor ids, ft_selftest_tensor mask,
                            const token_rows *from, ft_error *err)
{
    size_t column[FT_SELFTEST_TOKENS], cols = longest_row(from);
    const int64_t dim[] = { (int64_t) from->rows, (int64_t) cols };
    FT_TRY(ft_selftest_add(test, ids, FT_I32, 2, dim, err));
    FT_TRY(ft_selftest_add(test, mask, FT_I32, 2, dim, err));
    if (from->types != NULL)
        FT_TRY(ft_selftest_add(test, FT_SELFTEST_TYPES, FT_I32, 2, dim, err));
    for (size_t row = 0; row < from->rows; row++) {
        size_t first = row * from->cols;
        size_t count = find_tokens(column, from->mask + first, from->cols);
        for (size_t i = 0; i < count; i++) {
            ((int32_t *) test->tensor[ids].data)[row * cols + i] = from->ids[first + column[i]];
            ((int32_t *) test->tensor[mask].data)[row * cols + i] = 1;
            if (from->types != NULL)
                ((int32_t *) test->tensor[FT_SELFTEST_TYPES].data)[row * cols + i] =
                    from->types[first + column[i]];
        }
    }
    return FT_OK;
}

static ft_status add_texts(ft_selftest *test, const ft_dataset *data, ft_error *err)
{
    size_t rows = ft_min_size(data->rows, FT_SELFTEST_SAMPLES);
    const token_rows source = { data->ids, data->mask, data->types, rows, data->cols };
    const token_rows target = { data->target_ids, data->target_mask, NULL, rows,
                                data->target_cols };
    FT_TRY(add_tokens(test, FT_SELFTEST_IDS, FT_SELFTEST_MASK, &source, err));
    return data->target_ids == NULL
               ? FT_OK
               : add_tokens(test, FT_SELFTEST_TARGET_IDS, FT_SELFTEST_TARGET_MASK, &target, err);
}

/* ---- Images -------------------------------------------------------------------------------- */

/* How images are stored: every step-th pixel of every step-th line. */
typedef struct image_rows {
    size_t images, channels, height, width, step;
} image_rows;

static size_t stored_pixels(const image_rows *how)
{
    return how->channels * ft_divide_up(how->height, how->step) *
           ft_divide_up(how->width, how->step);
}

/* As many images as fit, or else one with a larger step. */
static image_rows choose_images(const ft_dataset *data)
{
    image_rows how = { .channels = (size_t) data->image[0],
                       .height = (size_t) data->image[1],
                       .width = (size_t) data->image[2],
                       .step = 1 };
    while (stored_pixels(&how) > FT_SELFTEST_PIXELS && how.step < how.height)
        how.step++;
    size_t fitting = ft_max_size(1, FT_SELFTEST_PIXELS / stored_pixels(&how));
    how.images = ft_min_size(ft_min_size(data->rows, FT_SELFTEST_SAMPLES), fitting);
    return how;
}

static ft_status add_images(ft_selftest *test, const ft_dataset *data, ft_error *err)
{
    const image_rows how = choose_images(data);
    const size_t lines = ft_divide_up(how.height, how.step),
                 columns = ft_divide_up(how.width, how.step);
    const size_t pixels = ft_dataset_pixel_count(data);
    const int64_t dim[] = { (int64_t) how.images, data->image[0], (int64_t) lines,
                            (int64_t) columns };
    FT_TRY(ft_selftest_add(test, FT_SELFTEST_PIXEL_VALUES, FT_I8, 4, dim, err));
    FT_TRY(ft_selftest_add(test, FT_SELFTEST_PIXEL_SCALE, FT_F32, 1, (int64_t[]){ 1 }, err));
    float *image = ft_calloc(how.images * pixels, sizeof *image), amax = 0.0f;
    ft_status status =
        image != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for images of a self-test");
    for (size_t i = 0; i < how.images && status == FT_OK; i++)
        status = ft_dataset_read_pixels(data, i, image + i * pixels, err);
    for (size_t i = 0; i < how.images * pixels && status == FT_OK; i++)
        amax = fmaxf(amax, fabsf(image[i]));
    float scale = isnormal(ft_scale_from_amax(amax)) ? ft_scale_from_amax(amax) : 1.0f;
    *(float *) test->tensor[FT_SELFTEST_PIXEL_SCALE].data = scale;
    int8_t *out = test->tensor[FT_SELFTEST_PIXEL_VALUES].data;
    for (size_t plane = 0; plane < how.images * how.channels && status == FT_OK; plane++)
        for (size_t y = 0; y < how.height; y += how.step)
            for (size_t x = 0; x < how.width; x += how.step)
                *out++ = ft_quantize(image[(plane * how.height + y) * how.width + x],
                                     ft_inverse_scale(scale));
    free(image);
    return status;
}

/* ---- Outputs ------------------------------------------------------------------------------- */

static ft_status compute(ft_selftest *test, ft_selftest_tensor which, float *tolerance,
                         uint8_t digest[FT_SHA256_BYTES], const char *path,
                         const ft_quant_config *quant, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_model_open_with_config(&model, path, NULL, quant, err));
    *tolerance = ft_selftest_tolerance(model);
    ft_status status = ft_selftest_compute(test, which, digest, model, err);
    ft_model_close(model);
    return status;
}

static ft_status add_outputs(ft_selftest *test, const ft_selftest_models *models, ft_error *err)
{
    const char *path = models->quantize != NULL ? models->path : models->quantized_path;
    FT_TRY(
        ft_selftest_add(test, FT_SELFTEST_DIGEST, FT_U8, 1, (int64_t[]){ FT_SHA256_BYTES }, err));
    FT_TRY(ft_selftest_add(test, FT_SELFTEST_TOLERANCE, FT_F32, 1, (int64_t[]){ 1 }, err));
    float *tolerance = test->tensor[FT_SELFTEST_TOLERANCE].data;
    uint8_t *digest = test->tensor[FT_SELFTEST_DIGEST].data;
    FT_TRY(compute(test, FT_SELFTEST_FLOAT, tolerance, digest, models->path,
                   &(ft_quant_config){ .mode = FT_MODE_FLOAT }, err));
    return compute(test, FT_SELFTEST_EXPECTED, tolerance, digest, path, models->quantize, err);
}

static ft_status make(ft_selftest *test, const ft_selftest_models *models, const ft_dataset *data,
                      ft_error *err)
{
    FT_TRY(ft_dataset_has_images(data) ? add_images(test, data, err) : add_texts(test, data, err));
    return add_outputs(test, models, err);
}

ft_status ft_selftest_make(char **bytes, size_t *size, const ft_selftest_models *models,
                           const ft_dataset *data, ft_error *err)
{
    ft_selftest test = { 0 };
    *bytes = NULL;
    ft_status status = make(&test, models, data, err);
    if (status == FT_OK)
        status = ft_selftest_format(&test, bytes, size, err);
    ft_selftest_fini(&test);
    return status;
}
