/*
 * weight_error.h - the error of a quantized matrix, scale by scale, against what its format costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_WEIGHT_ERROR_H
#define FT_RUNTIME_TOOLS_INSPECT_WEIGHT_ERROR_H

#include "kernels/op.h"
#include "runtime/error.h"

typedef struct ft_weight_error {
    double sqnr_db; /* of the whole matrix; infinite without an error */

    /*
     * The row that loses most against nearest rounding with the scales of its extremes, or the
     * group that loses more, both against that and against its own integers with the scale that
     * suits them best.  Methods that compensate rounding errors in later columns cost a single
     * group much more than nearest rounding, but no other scale would help it.
     */
    size_t worst_row, first_col, end_col;
    bool is_row;
    double group_db; /* its SQNR */
    double best_db;  /* and what it could be; at least group_db */
    double factor;   /* the quantized group is this multiple of the float one, by least squares */
} ft_weight_error;

/* The factors of a float matrix before it was quantized; NULL: all 1. */
typedef struct ft_weight_rescaling {
    const float *row; /* [rows], by which rows were divided */
    const float *col; /* [cols], by which columns were multiplied */
} ft_weight_rescaling;

/* Whether a weight has quantized values, which have scales. */
bool ft_weight_is_quantized(const ft_weight *weight);

/*
 * Compare a quantized matrix with the float matrix that it was made from, both in the memory of the
 * CPU.  FT_ESHAPE: they differ in rows or columns.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_weight_error_measure(ft_weight_error *out, const ft_weight *real,
                                              const ft_weight *quantized,
                                              const ft_weight_rescaling *rescaling, ft_error *err);

#endif
