/*
 * weights.c - per-channel int8 weights, quantized one block of 32 columns at a time.
 *
 * The layout consists of blocks of 32 columns, so a model larger than memory is quantized with one
 * such block in memory; the float rows are read from the mapped file, 32 columns at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/weights.h"

#include "kernels/half.h"
#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, TILE_ROWS = 8, TILE = TILE_ROWS * BLOCK };

/* At most BLOCK elements of F16 or BF16. */
static void load_f16(float *out, const ft_weight_matrix *w, size_t at, size_t n)
{
    uint16_t f16[BLOCK];
    memcpy(f16, (const unsigned char *) w->data + 2 * at, 2 * n);
    for (size_t i = 0; i < n; i++)
        out[i] = w->dtype == FT_F16 ? ft_float_from_f16(f16[i]) : ft_float_from_bf16(f16[i]);
}

void ft_weight_matrix_load(float *out, const ft_weight_matrix *w, size_t row, size_t first,
                           size_t n)
{
    size_t at = row * w->cols + first;
    if (w->dtype == FT_F32)
        memcpy(out, (const unsigned char *) w->data + 4 * at, 4 * n);
    for (size_t i = 0; i < n && w->dtype != FT_F32; i += BLOCK)
        load_f16(out + i, w, at + i, ft_min_size(BLOCK, n - i));
    for (size_t i = 0; i < n && w->col_factor != NULL; i++)
        out[i] *= w->col_factor[first + i];
    for (size_t i = 0; i < n && w->row_factor != NULL; i++)
        out[i] *= w->row_factor[row];
}

/* ---- Scales ------------------------------------------------------------------------------- */

/* The amax of a row as float bits, which order like magnitudes, with NaN and infinity on top. */
static uint32_t row_amax_bits(const ft_weight_matrix *w, size_t row)
{
    uint32_t amax_bits = 0;
    for (size_t first = 0; first < w->cols; first += BLOCK) {
        float value[BLOCK];
        size_t n = ft_min_size(BLOCK, w->cols - first);
        ft_weight_matrix_load(value, w, row, first, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t magnitude = ft_bits_from_float(value[i]) & 0x7fffffff;
            amax_bits = magnitude > amax_bits ? magnitude : amax_bits;
        }
    }
    return amax_bits;
}

static ft_status fail_not_finite(const ft_weight_matrix *w, size_t row, ft_error *err)
{
    float value = 0.0f;
    size_t column = 0;
    while (ft_weight_matrix_load(&value, w, row, column, 1), isfinite(value))
        column++;
    return ft_fail(err, FT_EFORMAT, "%s: row %zu, column %zu is %s", w->name, row, column,
                   isnan(value) ? "NaN" : "infinite");
}

static float safe_scale(float amax)
{
    float scale = ft_scale_from_amax(amax);
    return scale >= FLT_MIN ? scale : 1.0f;
}

ft_status ft_weight_matrix_check_dtype(const ft_weight_matrix *w, ft_error *err)
{
    if (w->dtype == FT_F32 || w->dtype == FT_F16 || w->dtype == FT_BF16)
        return FT_OK;
    return ft_fail(err, FT_EUNSUPPORTED, "%s: dtype %s, expected F32, F16 or BF16", w->name,
                   ft_dtype_name(w->dtype));
}

ft_status ft_weight_matrix_scales(float *scale, const ft_weight_matrix *w, ft_error *err)
{
    FT_TRY(ft_weight_matrix_check_dtype(w, err));
    for (size_t row = 0; row < w->rows; row++) {
        float amax = ft_float_from_bits(row_amax_bits(w, row));
        if (!isfinite(amax))
            return fail_not_finite(w, row, err);
        scale[row] = safe_scale(amax);
    }
    return FT_OK;
}

/* ---- Quantization ------------------------------------------------------------------------- */

size_t ft_weight_matrix_block_bytes(const ft_weight_matrix *w)
{
    return ft_layout_rows(FT_COL4_4R2_8C, w->rows) * BLOCK;
}

size_t ft_weight_matrix_blocks(const ft_weight_matrix *w)
{
    return ft_layout_cols(FT_COL4_4R2_8C, w->cols) / BLOCK;
}

void ft_weight_matrix_quantize_i8(int8_t *q, const ft_weight_matrix *w, const float *scale,
                                  size_t block)
{
    size_t padded_rows = ft_layout_rows(FT_COL4_4R2_8C, w->rows), first = block * BLOCK;
    size_t n = ft_min_size(BLOCK, w->cols - first);
    memset(q, 0, padded_rows * BLOCK);
    for (size_t row = 0; row < w->rows; row++) {
        float value[BLOCK], inverse = ft_inverse_scale(scale[row]);
        ft_weight_matrix_load(value, w, row, first, n);
        for (size_t i = 0; i < n; i++)
            q[ft_offset_col4(row, i, padded_rows)] = ft_quantize(value[i], inverse);
    }
}

ft_status ft_int8_weight_stream_init(ft_int8_weight_stream *stream, const ft_weight_matrix *w,
                                     const float *scale, ft_error *err)
{
    *stream = (ft_int8_weight_stream){ .weights = w, .scale = scale };
    stream->block = malloc(ft_weight_matrix_block_bytes(w));
    if (stream->block == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", w->name,
                       ft_weight_matrix_block_bytes(w));
    return FT_OK;
}

void ft_int8_weight_stream_fini(ft_int8_weight_stream *stream)
{
    free(stream->block);
    *stream = (ft_int8_weight_stream){ 0 };
}

size_t ft_int8_weight_stream_read(ft_int8_weight_stream *stream, void *bytes, size_t size)
{
    size_t block_bytes = ft_weight_matrix_block_bytes(stream->weights), n_read = 0;
    size_t end = block_bytes * ft_weight_matrix_blocks(stream->weights);
    while (n_read < size && stream->position < end) {
        size_t offset = stream->position % block_bytes;
        if (offset == 0)
            ft_weight_matrix_quantize_i8(stream->block, stream->weights, stream->scale,
                                         stream->position / block_bytes);
        size_t n = ft_min_size(size - n_read, block_bytes - offset);
        memcpy((char *) bytes + n_read, stream->block + offset, n);
        stream->position += n;
        n_read += n;
    }
    if (stream->position == end) { /* many streams may be open until the file is complete */
        free(stream->block);
        stream->block = NULL;
    }
    return n_read;
}

/* ---- Error -------------------------------------------------------------------------------- */

static double squared_error(float value, float scale, float inverse)
{
    double error = (double) value - (double) (scale * ft_quantize_to_float(value, inverse));
    return error * error;
}

double ft_sqnr_db(double signal, double noise)
{
    return noise > 0.0 ? 10.0 * ft_math_log10(signal / noise) : HUGE_VAL;
}

/* Sums run along the rows, so they do not depend on the block size. */
ft_weight_sqnr ft_weight_matrix_measure(const ft_weight_matrix *w, const float *scale)
{
    uint32_t amax_bits = 0;
    for (size_t row = 0; row < w->rows; row++) {
        uint32_t row_bits = row_amax_bits(w, row);
        amax_bits = row_bits > amax_bits ? row_bits : amax_bits;
    }
    float tensor_scale = safe_scale(ft_float_from_bits(amax_bits));
    float tensor_inverse = ft_inverse_scale(tensor_scale);

    double signal = 0.0, row_noise = 0.0, tensor_noise = 0.0;
    for (size_t row = 0; row < w->rows; row++) {
        float value[BLOCK], inverse = ft_inverse_scale(scale[row]);
        for (size_t first = 0; first < w->cols; first += BLOCK) {
            size_t n = ft_min_size(BLOCK, w->cols - first);
            ft_weight_matrix_load(value, w, row, first, n);
            for (size_t i = 0; i < n; i++) {
                signal += (double) value[i] * (double) value[i];
                row_noise += squared_error(value[i], scale[row], inverse);
                tensor_noise += squared_error(value[i], tensor_scale, tensor_inverse);
            }
        }
    }
    return (ft_weight_sqnr){ ft_sqnr_db(signal, row_noise), ft_sqnr_db(signal, tensor_noise) };
}
