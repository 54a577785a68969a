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
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, TILE_ROWS = 8, TILE = TILE_ROWS * BLOCK };

/* At most BLOCK elements of F16 or BF16. */
static void load_halves(float *out, const ft_weights *w, size_t at, size_t n)
{
    uint16_t half[BLOCK];
    memcpy(half, (const unsigned char *) w->data + 2 * at, 2 * n);
    for (size_t i = 0; i < n; i++)
        out[i] = w->dtype == FT_F16 ? ft_float_from_f16(half[i]) : ft_float_from_bf16(half[i]);
}

void ft_weights_load(float *out, const ft_weights *w, size_t row, size_t first, size_t n)
{
    size_t at = row * w->cols + first;
    if (w->dtype == FT_F32)
        memcpy(out, (const unsigned char *) w->data + 4 * at, 4 * n);
    for (size_t i = 0; i < n && w->dtype != FT_F32; i += BLOCK)
        load_halves(out + i, w, at + i, ft_min_size(BLOCK, n - i));
    for (size_t i = 0; i < n && w->col_factor != NULL; i++)
        out[i] *= w->col_factor[first + i];
    for (size_t i = 0; i < n && w->row_factor != NULL; i++)
        out[i] *= w->row_factor[row];
}

/* ---- Scales ------------------------------------------------------------------------------- */

/* The amax of a row as float bits, which order like magnitudes, with NaN and infinity on top. */
static uint32_t largest_in_row(const ft_weights *w, size_t row)
{
    uint32_t largest = 0;
    for (size_t first = 0; first < w->cols; first += BLOCK) {
        float value[BLOCK];
        size_t n = ft_min_size(BLOCK, w->cols - first);
        ft_weights_load(value, w, row, first, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t magnitude = ft_bits_from_float(value[i]) & 0x7fffffff;
            largest = magnitude > largest ? magnitude : largest;
        }
    }
    return largest;
}

static ft_status not_finite(const ft_weights *w, size_t row, ft_error *err)
{
    float value = 0.0f;
    size_t column = 0;
    while (ft_weights_load(&value, w, row, column, 1), isfinite(value))
        column++;
    return ft_fail(err, FT_EFORMAT, "%s: row %zu, column %zu is %s", w->name, row, column,
                   isnan(value) ? "NaN" : "infinite");
}

static float scale_of(float amax)
{
    float scale = ft_scale_from_amax(amax);
    return scale >= FLT_MIN ? scale : 1.0f;
}

ft_status ft_weights_check_dtype(const ft_weights *w, ft_error *err)
{
    if (w->dtype == FT_F32 || w->dtype == FT_F16 || w->dtype == FT_BF16)
        return FT_OK;
    return ft_fail(err, FT_EUNSUPPORTED, "%s: dtype %s, expected F32, F16 or BF16", w->name,
                   ft_dtype_name(w->dtype));
}

ft_status ft_weights_scales(float *scale, const ft_weights *w, ft_error *err)
{
    FT_TRY(ft_weights_check_dtype(w, err));
    for (size_t row = 0; row < w->rows; row++) {
        float amax = ft_float_from_bits(largest_in_row(w, row));
        if (!isfinite(amax))
            return not_finite(w, row, err);
        scale[row] = scale_of(amax);
    }
    return FT_OK;
}

/* ---- Quantization ------------------------------------------------------------------------- */

size_t ft_weights_block_bytes(const ft_weights *w)
{
    return ft_layout_rows(FT_COL4_4R2_8C, w->rows) * BLOCK;
}

size_t ft_weights_blocks(const ft_weights *w)
{
    return ft_layout_cols(FT_COL4_4R2_8C, w->cols) / BLOCK;
}

void ft_weights_quantize(int8_t *codes, const ft_weights *w, const float *scale, size_t block)
{
    size_t padded_rows = ft_layout_rows(FT_COL4_4R2_8C, w->rows), first = block * BLOCK;
    size_t n = ft_min_size(BLOCK, w->cols - first);
    memset(codes, 0, padded_rows * BLOCK);
    for (size_t row = 0; row < w->rows; row++) {
        float value[BLOCK], inverse = ft_inverse_scale(scale[row]);
        ft_weights_load(value, w, row, first, n);
        for (size_t i = 0; i < n; i++)
            codes[ft_offset_col4(row, i, padded_rows)] = ft_quantize(value[i], inverse);
    }
}

ft_status ft_weights_stream_init(ft_weights_stream *stream, const ft_weights *w, const float *scale,
                                 ft_error *err)
{
    *stream = (ft_weights_stream){ .weights = w, .scale = scale };
    stream->block = malloc(ft_weights_block_bytes(w));
    if (stream->block == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes", w->name,
                       ft_weights_block_bytes(w));
    return FT_OK;
}

void ft_weights_stream_fini(ft_weights_stream *stream)
{
    free(stream->block);
    *stream = (ft_weights_stream){ 0 };
}

size_t ft_weights_stream_read(ft_weights_stream *stream, void *bytes, size_t size)
{
    size_t block_bytes = ft_weights_block_bytes(stream->weights), done = 0;
    size_t end = block_bytes * ft_weights_blocks(stream->weights);
    while (done < size && stream->position < end) {
        size_t within = stream->position % block_bytes;
        if (within == 0)
            ft_weights_quantize(stream->block, stream->weights, stream->scale,
                                stream->position / block_bytes);
        size_t piece = ft_min_size(size - done, block_bytes - within);
        memcpy((char *) bytes + done, stream->block + within, piece);
        stream->position += piece;
        done += piece;
    }
    if (stream->position == end) { /* many streams may be open until the file is complete */
        free(stream->block);
        stream->block = NULL;
    }
    return done;
}

/* ---- Error -------------------------------------------------------------------------------- */

static double squared_error(float value, float scale, float inverse)
{
    double error = (double) value - (double) (scale * ft_quantize_to_float(value, inverse));
    return error * error;
}

double ft_decibels(double signal, double noise)
{
    return noise > 0.0 ? 10.0 * log10(signal / noise) : HUGE_VAL;
}

/* Sums run along the rows, so they do not depend on the block size. */
ft_weights_sqnr ft_weights_measure(const ft_weights *w, const float *scale)
{
    uint32_t largest = 0;
    for (size_t row = 0; row < w->rows; row++) {
        uint32_t here = largest_in_row(w, row);
        largest = here > largest ? here : largest;
    }
    float tensor_scale = scale_of(ft_float_from_bits(largest));
    float tensor_inverse = ft_inverse_scale(tensor_scale);

    double signal = 0.0, row_noise = 0.0, tensor_noise = 0.0;
    for (size_t row = 0; row < w->rows; row++) {
        float value[BLOCK], inverse = ft_inverse_scale(scale[row]);
        for (size_t first = 0; first < w->cols; first += BLOCK) {
            size_t n = ft_min_size(BLOCK, w->cols - first);
            ft_weights_load(value, w, row, first, n);
            for (size_t i = 0; i < n; i++) {
                signal += (double) value[i] * (double) value[i];
                row_noise += squared_error(value[i], scale[row], inverse);
                tensor_noise += squared_error(value[i], tensor_scale, tensor_inverse);
            }
        }
    }
    return (ft_weights_sqnr){ ft_decibels(signal, row_noise), ft_decibels(signal, tensor_noise) };
}
