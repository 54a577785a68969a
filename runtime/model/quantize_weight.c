/*
 * quantize_weight.c - quantizes weights when a model is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/quantize_weight.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static float element(const ft_weight *weight, size_t row, size_t col)
{
    size_t index = row * weight->cols + col;
    switch (weight->dtype) {
    case FT_F16:
        return ft_float_from_f16(((const uint16_t *) weight->data)[index]);
    case FT_BF16:
        return ft_float_from_bf16(((const uint16_t *) weight->data)[index]);
    case FT_I8:
        return ((const int8_t *)
                    weight->data)[ft_offset(weight->layout, row, col, weight->rows, weight->cols)];
    default:
        return ((const float *) weight->data)[index];
    }
}

/* A row as float, multiplied by a factor per column. */
static void load_row(float *out, const ft_weight *weight, size_t row, const float *factor)
{
    for (size_t col = 0; col < weight->cols; col++)
        out[col] = element(weight, row, col) * (factor != NULL ? factor[col] : 1.0f);
}

/*
 * Quantize one row in place and return its scale.  The scale is 1 for a row of zeros, or if it
 * would be subnormal, so that its inverse is finite.
 */
static float quantize_row(float *row, size_t n)
{
    float amax = 0.0f;
    for (size_t i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(row[i]));
    float scale = ft_scale_from_amax(amax);
    scale = scale >= FLT_MIN ? scale : 1.0f;
    for (size_t i = 0; i < n; i++)
        row[i] = ft_quantize_to_float(row[i], ft_inverse_scale(scale));
    return scale;
}

ft_status ft_fake_quantize_weight(ft_weight *weight, const float *factor, void **memory,
                                  ft_error *err)
{
    size_t count = weight->rows * weight->cols;
    float *quantized = ft_calloc_aligned((count + weight->rows) * sizeof *quantized);
    if (quantized == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu fake-quantized values", weight->name,
                       count);
    float *scales = quantized + count;
    for (size_t row = 0; row < weight->rows; row++) {
        float *out = quantized + row * weight->cols;
        load_row(out, weight, row, factor);
        scales[row] = weight->dtype == FT_I8 ? weight->scale[row] : quantize_row(out, weight->cols);
    }
    weight->data = quantized;
    weight->scale = scales;
    weight->dtype = FT_F32;
    weight->layout = FT_ROW;
    *memory = quantized;
    return FT_OK;
}

ft_status ft_int8_quantize_weight(ft_weight *weight, const float *factor, void **memory,
                                  ft_error *err)
{
    size_t padded_rows = ft_layout_rows(FT_COL4_4R2_8C, weight->rows);
    size_t bytes = padded_rows * ft_layout_cols(FT_COL4_4R2_8C, weight->cols);
    int8_t *quantized = ft_calloc_aligned(bytes + weight->rows * sizeof(float));
    float *row_values = ft_calloc(weight->cols, sizeof *row_values);
    *memory = quantized;
    if (quantized == NULL || row_values == NULL) {
        free(row_values);
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu int8 values", weight->name, bytes);
    }
    float *scales = (float *) (void *) (quantized + bytes);
    for (size_t row = 0; row < weight->rows; row++) {
        load_row(row_values, weight, row, factor);
        scales[row] = quantize_row(row_values, weight->cols);
        for (size_t col = 0; col < weight->cols; col++)
            quantized[ft_offset_col4(row, col, padded_rows)] = (int8_t) row_values[col];
    }
    free(row_values);
    weight->data = quantized;
    weight->scale = scales;
    weight->dtype = FT_I8;
    weight->layout = FT_COL4_4R2_8C;
    return FT_OK;
}
