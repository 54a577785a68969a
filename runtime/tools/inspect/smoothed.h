/*
 * smoothed.h - the smoothing of a plan's values: runtime/model/smoothing.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_INSPECT_SMOOTHED_H
#define FT_RUNTIME_TOOLS_INSPECT_SMOOTHED_H

#include "kernels/op.h"

/*
 * The vector by which the columns of a quantized value were multiplied before it was quantized;
 * NULL if there is none.
 */
const float *ft_value_smoothing(const ft_plan *plan, int value);

/* The vector of the value that a linear multiplies by weight `index`; NULL: none. */
const float *ft_matrix_smoothing(const ft_plan *plan, int index);

#endif
