/*
 * weights.h - int8 quantization of a float weight matrix with one scale per row, block by block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_WEIGHTS_H
#define FT_CALIBRATE_WEIGHTS_WEIGHTS_H

#include "runtime/error.h"

/*
 * A float matrix [rows, cols], row-major: the weight of a linear layer, one row per output channel.
 */
typedef struct ft_weight_matrix {
    const char *name;  /* for errors; borrowed */
    ft_dtype dtype;    /* FT_F32, FT_F16 or FT_BF16 */
    const void *data;  /* borrowed, for example from a mapped file: any alignment */
    size_t rows, cols; /* not 0; rows * cols * 4 does not overflow */

    /* [rows], [cols]; NULL: all 1. Stored values are multiplied by both when they are read. */
    const float *row_factor, *col_factor;
} ft_weight_matrix;

/* `n` elements of a row, starting with column `first`, as float. */
void ft_weight_matrix_load(float *out, const ft_weight_matrix *weights, size_t row, size_t first,
                           size_t n);

/* FT_EUNSUPPORTED for a dtype other than F32, F16 and BF16. */
ft_status ft_weight_matrix_check_dtype(const ft_weight_matrix *weights, ft_error *err);

/*
 * The scale of each row: the exact amax / 127. A row of zeros gets 1, as does one so small (below
 * 127 * 2^-126) that its scale has no normal inverse; all its quantized values are 0.
 *
 *   scale  [rows]
 *
 * Errors: FT_EFORMAT for a NaN or an infinity, with name, row and column; FT_EUNSUPPORTED for
 * another dtype.
 */
ft_status ft_weight_matrix_scales(float *scale, const ft_weight_matrix *weights, ft_error *err);

/* Bytes of one block of 32 columns in FT_COL4_4R2_8C, and the number of blocks of the matrix. */
size_t ft_weight_matrix_block_bytes(const ft_weight_matrix *weights);
size_t ft_weight_matrix_blocks(const ft_weight_matrix *weights);

/*
 * Quantizes columns 32 * block .. 32 * block + 31 of all rows, in FT_COL4_4R2_8C with its padding;
 * the blocks in sequence are the matrix.
 *
 *   q  [ft_weight_matrix_block_bytes()]     scale  [rows] from ft_weight_matrix_scales()
 */
void ft_weight_matrix_quantize_i8(int8_t *q, const ft_weight_matrix *weights, const float *scale,
                                  size_t block);

/* The same bytes as a stream, for a writer that reads pieces of any size. */
typedef struct ft_int8_weight_stream {
    const ft_weight_matrix *weights; /* borrowed */
    const float *scale;              /* borrowed */
    size_t position;                 /* bytes read so far */
    int8_t *block; /* holds the block at `position`, if it was started; NULL at the end */
} ft_int8_weight_stream;

/* FT_ENOMEM if there is no memory for one block. fini also accepts a failed or zeroed one. */
ft_status ft_int8_weight_stream_init(ft_int8_weight_stream *stream, const ft_weight_matrix *weights,
                                     const float *scale, ft_error *err);
void ft_int8_weight_stream_fini(ft_int8_weight_stream *stream);

/* Reads up to `size` bytes; returns how many, 0 at the end. */
size_t ft_int8_weight_stream_read(ft_int8_weight_stream *stream, void *bytes, size_t size);

/* The ratio of two sums of squares in dB; infinite if the noise is 0. */
double ft_sqnr_db(double signal, double noise);

/*
 * SQNR of the quantized weights in dB (see ft_distortion): with these per-channel scales, and with
 * one scale for the tensor. Infinite if there is no error.
 */
typedef struct ft_weight_sqnr {
    double per_channel, per_tensor;
} ft_weight_sqnr;

ft_weight_sqnr ft_weight_matrix_measure(const ft_weight_matrix *weights, const float *scale);

#endif
