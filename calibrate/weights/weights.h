/*
 * weights.h - a float weight matrix becomes int8 codes with one scale a row, piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_WEIGHTS_H
#define FT_CALIBRATE_WEIGHTS_WEIGHTS_H

#include "runtime/error.h"

/* A float matrix [rows, cols], row-major: a linear layer's weight, a row for each output channel.
 */
typedef struct ft_weights {
    const char *name;  /* for errors; borrowed */
    ft_dtype dtype;    /* FT_F32, FT_F16 or FT_BF16 */
    const void *data;  /* borrowed, as from a mapped file: any alignment */
    size_t rows, cols; /* not 0; rows * cols * 4 does not overflow */

    /* [rows], [cols]; NULL: all 1.  What is stored is multiplied by both where it is read. */
    const float *row_factor, *col_factor;
} ft_weights;

/* `n` elements of a row from column `first` on, as float. */
void ft_weights_load(float *out, const ft_weights *weights, size_t row, size_t first, size_t n);

/* FT_EUNSUPPORTED for a dtype other than F32, F16 and BF16. */
ft_status ft_weights_check_dtype(const ft_weights *weights, ft_error *err);

/*
 * The scale of each row: the exact maximum of its magnitudes / 127.  A row of zeros gets 1, as does
 * one so small (below 127 * 2^-126) that its scale has no normal inverse; its codes are all 0.
 *
 *   scale  [rows]
 *
 * Errors: FT_EFORMAT for a NaN or an infinity, with name, row and column; FT_EUNSUPPORTED for
 * another dtype.
 */
ft_status ft_weights_scales(float *scale, const ft_weights *weights, ft_error *err);

/* Bytes of one block of 32 columns in FT_COL4_4R2_8C, and how many blocks make the matrix. */
size_t ft_weights_block_bytes(const ft_weights *weights);
size_t ft_weights_blocks(const ft_weights *weights);

/*
 * The codes of columns 32 * block .. 32 * block + 31 of all rows, as they lie in FT_COL4_4R2_8C
 * with its padding; the blocks one after the other are the matrix.
 *
 *   codes  [ft_weights_block_bytes()]     scale  [rows] from ft_weights_scales()
 */
void ft_weights_quantize(int8_t *codes, const ft_weights *weights, const float *scale,
                         size_t block);

/* The same bytes as a stream, for a writer that asks for them in pieces of any size. */
typedef struct ft_weights_stream {
    const ft_weights *weights; /* borrowed */
    const float *scale;        /* borrowed */
    size_t position;           /* bytes read so far */
    int8_t *block;             /* that holds `position`, if it was begun; NULL at the end */
} ft_weights_stream;

/* FT_ENOMEM when there is none for one block.  fini takes a failed or zeroed one too. */
ft_status ft_weights_stream_init(ft_weights_stream *stream, const ft_weights *weights,
                                 const float *scale, ft_error *err);
void ft_weights_stream_fini(ft_weights_stream *stream);

/* Read up to `size` bytes; returns how many, 0 at the end. */
size_t ft_weights_stream_read(ft_weights_stream *stream, void *bytes, size_t size);

/* The ratio of two sums of squares in dB; infinite where there is no noise. */
double ft_decibels(double signal, double noise);

/* What quantization does to the weights, in dB (see ft_distortion): with these scales, and with one
 * scale for the whole matrix.  Infinite where nothing is lost. */
typedef struct ft_weights_sqnr {
    double per_channel, per_tensor;
} ft_weights_sqnr;

ft_weights_sqnr ft_weights_measure(const ft_weights *weights, const float *scale);

#endif
