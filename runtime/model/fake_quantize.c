/*
 * fake_quantize.c - fake-quantized weights: the int8 values, held in float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/fake_quantize.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <float.h>
#include <math.h>

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

ft_status ft_fake_quantize_weight(ft_weight *weight, void **memory, ft_error *err)
{
    size_t count = weight->rows * weight->cols;
    float *quantized = ft_calloc_aligned((count + weight->rows) * sizeof *quantized);
    if (quantized == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu fake-quantized values", weight->name,
                       count);
    float *scales = quantized + count;
    for (size_t row = 0; row < weight->rows; row++) {
        float *out = quantized + row * weight->cols;
        for (size_t col = 0; col < weight->cols; col++)
            out[col] = element(weight, row, col);
        scales[row] = weight->dtype == FT_I8 ? weight->scale[row] : quantize_row(out, weight->cols);
    }
    weight->data = quantized;
    weight->scale = scales;
    weight->dtype = FT_F32;
    weight->layout = FT_ROW;
    *memory = quantized;
    return FT_OK;
}
