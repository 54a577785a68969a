/*
 * rewrite.h - writes a float artifact with some tensors replaced.
 *
 * Replaced tensors are stored as F32, because factors and rotations need more bits than BF16 or F16
 * has; all others are copied from the mapped file, byte by byte. Rows are computed while they are
 * written, so memory holds one row at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_SMOOTH_REWRITE_H
#define FT_CALIBRATE_SMOOTH_REWRITE_H

#include "calibrate/weights/fold_ranges.h"

/* Which tensors are replaced, and by what. */
typedef struct ft_rewrite {
    const ft_model *model; /* opened from a float artifact */

    /* A number of the tensor for read_row(), or -1: it is copied. */
    int (*find)(const void *user, const ft_artifact_tensor *tensor);

    /* Writes row `row` of a replaced tensor; vectors have one row. */
    ft_status (*read_row)(void *user, const ft_artifact_tensor *tensor, int number, size_t row,
                          float *out, ft_error *err);
    void *user;

    ft_folded_scales *folded; /* whose factors are stored beside the tensors; borrowed */
} ft_rewrite;

/*
 * Writes the artifact to `writer`, up to but not including ft_artifact_commit(). Errors: those of
 * read_row() and of writing; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_rewrite_artifact(ft_artifact_writer *writer, const ft_rewrite *rewrite,
                                          ft_error *err);

#endif
