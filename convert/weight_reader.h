/*
 * weight_reader.h - stream one weight of a conversion, rotated where it is to be.
 *
 * A rotated weight is read in bands of rows that its rotation does not mix with other rows: some
 * rows, some heads, or the whole matrix.  A band is held as F32, so memory use is at most that of
 * one matrix.  Tiles of it, which the rotation maps to themselves, are rotated in double precision,
 * rounded to F32, and then to the dtype of the artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_WEIGHT_READER_H
#define FT_CONVERT_WEIGHT_READER_H

#include "convert/convert.h"

typedef struct ft_weight_reader {
    const ft_mapped_weight *weight;
    ft_tensor_reader source; /* in the dtype of the artifact, or as F32 if it is to be rotated */

    /* Of rotated weights, while they are read. */
    size_t rows, cols;           /* of a band */
    float *band, *norm;          /* [rows, cols] and [cols]; norm: or NULL */
    double *tile;                /* [tile_rows, tile_cols] */
    size_t tile_rows, tile_cols; /* rows that are mixed; columns that are, or a part of them */
    size_t count, left;          /* values of the band, and those that are still to be delivered */
} ft_weight_reader;

void ft_weight_reader_init(ft_weight_reader *out, const ft_mapped_weight *weight);

/* Releases what a reader holds that has not delivered all values; accepts zeros. */
void ft_weight_reader_fini(ft_weight_reader *reader);

/*
 * An ft_read_callback (runtime/container/artifact.h) whose user data is an ft_weight_reader; the
 * errors are those of ft_tensor_reader_read(), and FT_ENOMEM.
 */
ft_status ft_weight_reader_read(void *reader, void *buffer, size_t bytes, size_t *produced,
                                ft_error *err);

#endif
