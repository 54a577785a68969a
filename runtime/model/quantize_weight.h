/*
 * quantize_weight.h - quantizes weights when a model is opened: to check int8, or to
 * evaluate it before an artifact exists.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_QUANTIZE_WEIGHT_H
#define FT_RUNTIME_MODEL_QUANTIZE_WEIGHT_H

#include "kernels/op.h"

/*
 * `factor`, [cols], multiplies the columns of a float matrix before it is quantized; NULL: none.
 */

/*
 * Replace the data of `weight` [rows, cols] by its int8 values held in F32, with one scale per row.
 * A float matrix is quantized with the absmax of each row; an int8 matrix keeps its values and
 * scales.  The weight points into *memory; release it with free().  FT_ENOMEM: out of memory.
 */
FT_MUST_USE ft_status ft_fake_quantize_weight(ft_weight *weight, const float *factor, void **memory,
                                              ft_error *err);

/*
 * Replace the data of a float matrix by the int8 values and scales that an int8 artifact would
 * have, in layout COL4_4R2_8C.  The weight points into *memory; release it with free().  FT_ENOMEM:
 * out of memory.
 */
FT_MUST_USE ft_status ft_int8_quantize_weight(ft_weight *weight, const float *factor, void **memory,
                                              ft_error *err);

#endif
