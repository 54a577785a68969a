/*
 * fake_quantize.h - fake-quantized weights: the int8 values, held in float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_FAKE_QUANTIZE_H
#define FT_RUNTIME_MODEL_FAKE_QUANTIZE_H

#include "kernels/op.h"

/*
 * Replace the data of `weight` [rows, cols] by its int8 values held in F32, with one scale per row.
 * A float matrix is quantized with the absmax of each row; an int8 matrix keeps its values and
 * scales.  The weight points into *memory; release it with free().  FT_ENOMEM: out of memory.
 */
FT_MUST_USE ft_status ft_fake_quantize_weight(ft_weight *weight, void **memory, ft_error *err);

#endif
