/*
 * weight_error.h - the error of a quantized matrix, row by row, against what its format costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_WEIGHT_ERROR_H
#define FT_RUNTIME_TOOLS_INSPECT_WEIGHT_ERROR_H

#include "kernels/op.h"
#include "runtime/error.h"

typedef struct ft_weight_error {
    double sqnr_db;   /* of the whole matrix; infinite without an error */
    size_t worst_row; /* that loses most against nearest rounding with the scales of its extremes */
    double row_db;    /* its SQNR */
    double best_db;   /* its SQNR after that rounding; at least row_db */
    double factor;    /* the quantized row is this multiple of the float row, by least squares */
} ft_weight_error;

/* Whether a weight has quantized values, which have scales. */
bool ft_weight_is_quantized(const ft_weight *weight);

/*
 * Compare a quantized matrix with the float matrix that it was made from, both in the memory of the
 * CPU.  `smoothing` [cols]: the columns were divided by it before they were quantized; NULL: not.
 * FT_ESHAPE: they differ in rows or columns.  FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_weight_error_measure(ft_weight_error *out, const ft_weight *real,
                                              const ft_weight *quantized, const float *smoothing,
                                              ft_error *err);

#endif
