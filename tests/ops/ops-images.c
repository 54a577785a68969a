/*
 * ops-images.c - operations that turn images into sequences: patchify, add_class_token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/ops.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGES = 3, MAX_STARTS = IMAGES + 1 };

/* IMAGES images, each of `length` rows. */
static ft_batch batch_of(int32_t start[MAX_STARTS], size_t length)
{
    for (size_t i = 0; i < MAX_STARTS; i++)
        start[i] = (int32_t) (i * length);
    return (ft_batch){
        .tokens = IMAGES * length, .sequences = IMAGES, .longest = length, .start = start
    };
}

/* The expected element (row, col), by the definition: shares no index formula with a kernel. */
static float patch_element(const float *images, const ft_conv *conv, int32_t prefix_tokens,
                           size_t row, size_t col)
{
    int down = conv->height / conv->kernel[0], across = conv->width / conv->kernel[1];
    int length = prefix_tokens + down * across, place = (int) row % length - prefix_tokens;
    int channel = (int) col / (conv->kernel[0] * conv->kernel[1]);
    int inside = (int) col % (conv->kernel[0] * conv->kernel[1]);
    if (place < 0)
        return 0.0f;
    int y = place / across * conv->kernel[0] + inside / conv->kernel[1];
    int x = place % across * conv->kernel[1] + inside % conv->kernel[1];
    int image = (int) row / length;
    return images[((image * conv->channels + channel) * conv->height + y) * conv->width + x];
}

static ft_conv grid_of(int channels, int height, int width, int rows, int cols)
{
    return (ft_conv){
        channels, height, width, { rows, cols }, { rows, cols }, { 0, 0 }, .dilation = { 1, 1 }
    };
}

/* f32 is copied, f16 rounded once, int8 as quant.h defines it. */
static size_t wrong_patches(bench *on, const ft_conv *conv, int32_t prefix_tokens, ft_dtype dtype,
                            float scale)
{
    int32_t start[MAX_STARTS];
    size_t length = (size_t) prefix_tokens + (size_t) (conv->height / conv->kernel[0]) *
                                                 (size_t) (conv->width / conv->kernel[1]);
    size_t cols = (size_t) (conv->channels * conv->kernel[0] * conv->kernel[1]), wrong = 0;
    size_t pixels = (size_t) (conv->channels * conv->height * conv->width);
    float *images = random_floats(81, IMAGES * pixels, 1.0);
    void *found = must_have(IMAGES * length * cols, sizeof(float));
    ft_batch batch = batch_of(start, length);
    oneop t;
    oneop_begin(&t, on, FT_OP_PATCHIFY, &batch);
    t.op.attr.conv = *conv;
    t.op.attr.prefix_tokens = prefix_tokens;
    oneop_in(&t, 0, FT_SEQUENCES, (int32_t) pixels, FT_F32, 0.0f, images);
    if (scale > 0.0f)
        oneop_quantized(&t, FT_TOKENS, (int32_t) cols, dtype, scale);
    else
        oneop_out_as(&t, FT_TOKENS, (int32_t) cols, dtype);
    oneop_run(&t, scale > 0.0f ? NULL : found, scale > 0.0f ? found : NULL);
    oneop_end(&t);
    for (size_t i = 0; i < IMAGES * length * cols; i++) {
        float x = patch_element(images, conv, prefix_tokens, i / cols, i % cols);
        if (scale > 0.0f)
            x = ft_quantize_to_float(x, ft_inverse_scale(scale));
        else if (dtype == FT_F16)
            x = ft_float_from_f16(ft_f16_from_float(x));
        wrong += number_of(found, dtype, i) != (double) x;
    }
    free(images);
    free(found);
    return wrong;
}

void test_patchify(bench *on)
{
    static const struct {
        int channels, height, width, rows, cols, prefix_tokens;
    } grids[] = { { 3, 32, 32, 4, 4, 1 },    { 1, 7, 9, 2, 3, 2 },   { 3, 30, 28, 15, 14, 1 },
                  { 2, 5, 5, 5, 5, 0 },      { 5, 11, 24, 1, 8, 2 }, { 4, 9, 10, 9, 1, 1 },
                  { 3, 224, 224, 16, 16, 1 } };
    static const struct {
        ft_dtype dtype;
        float scale;
        const char *what;
    } results[] = { { FT_F32, 0.0f, "f32" },
                    { FT_F16, 0.0f, "f16" },
                    { FT_I8, 0.02f, "int8" },
                    { FT_F32, 0.02f, "fake-quantized values" } };
    for (size_t r = 0; r < FT_COUNT(results); r++) {
        size_t wrong = 0;
        for (size_t g = 0; g < FT_COUNT(grids); g++) {
            ft_conv conv = grid_of(grids[g].channels, grids[g].height, grids[g].width,
                                   grids[g].rows, grids[g].cols);
            wrong += wrong_patches(on, &conv, grids[g].prefix_tokens, results[r].dtype,
                                   results[r].scale);
        }
        is_int((long long) wrong, 0, "%s: patchify extracts %zu grids of patches exactly as %s",
               on->name, FT_COUNT(grids), results[r].what);
    }
}

/* ---- Class token -------------------------------------------------------------------------- */

enum { LENGTH = 7 };

/* A sum of two floats is rounded once, and once more where it is stored in f16. */
static size_t wrong_places(bench *on, size_t cols, int32_t prefix_tokens, ft_dtype dtype,
                           ft_dtype table)
{
    int32_t start[MAX_STARTS];
    size_t n = IMAGES * LENGTH * cols, wrong = 0;
    double *x_value, *at, *lead[2];
    ft_weight x = random_weight(82, IMAGES * LENGTH, cols, dtype, &x_value);
    ft_weight position = random_weight(83, LENGTH, cols, table, &at);
    ft_weight first[2];
    void *found = must_have(n, sizeof(float));
    ft_batch batch = batch_of(start, LENGTH);
    oneop t;
    oneop_begin(&t, on, FT_OP_ADD_CLASS_TOKEN, &batch);
    t.op.attr.prefix_tokens = prefix_tokens;
    oneop_in(&t, 0, FT_TOKENS, (int32_t) cols, dtype, 0.0f, x.data);
    oneop_weight(&t, 0, position);
    for (int i = 0; i < 2; i++)
        first[i] = random_weight(84 + (uint64_t) i, 1, cols, FT_F32, &lead[i]);
    for (int i = 0; i < prefix_tokens; i++)
        oneop_weight(&t, 1 + i, first[i]);
    oneop_out_as(&t, FT_TOKENS, (int32_t) cols, dtype);
    oneop_run(&t, found, NULL);
    oneop_end(&t);
    for (size_t i = 0; i < n; i++) {
        size_t place = i / cols % LENGTH, col = i % cols;
        double own = place < (size_t) prefix_tokens ? lead[place][col] : x_value[i];
        float sum = (float) (own + at[place * cols + col]);
        if (dtype == FT_F16)
            sum = ft_float_from_f16(ft_f16_from_float(sum));
        wrong += number_of(found, dtype, i) != (double) sum;
    }
    for (int i = 0; i < 2; i++) {
        free_weight(&first[i]);
        free(lead[i]);
    }
    free_weight(&x);
    free_weight(&position);
    free(x_value);
    free(at);
    free(found);
    return wrong;
}

void test_add_class_token(bench *on)
{
    static const ft_dtype dtypes[] = { FT_F32, FT_F16 };
    for (int32_t prefix_tokens = 1; prefix_tokens <= 2; prefix_tokens++) {
        size_t wrong = 0;
        for (size_t i = 0; i < 2 * FT_COUNT(dtypes); i++)
            for (size_t cols = 33; cols <= 128; cols += 95)
                wrong += wrong_places(on, cols, prefix_tokens, dtypes[i / 2], dtypes[i % 2]);
        is_int((long long) wrong, 0,
               "%s: add_class_token adds positions and %d prefix token%s exactly in f32 and f16",
               on->name, prefix_tokens, prefix_tokens > 1 ? "s" : "");
    }
}
