/*
 * fake_quantize.h - weights as int8 sees them, with the codes held in float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_FAKE_QUANTIZE_H
#define FT_RUNTIME_MODEL_FAKE_QUANTIZE_H

#include "kernels/op.h"

/*
 * Replace `weight` by its codes in float, row by row; a float matrix is quantized by the largest
 * magnitude of each row, an int8 one keeps its codes and scales.  *memory is what the weight now
 * points into; free it with free().
 */
FT_MUST_USE ft_status ft_fake_weight(ft_weight *weight, void **memory, ft_error *err);

#endif
