/*
 * groupwise_weight.h - a group-wise quantized matrix in memory, as a weight of a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUPWISE_WEIGHT_H
#define FT_CALIBRATE_WEIGHTS_GROUPWISE_WEIGHT_H

#include "calibrate/weights/groupwise_stream.h"
#include "kernels/op.h"

/* Bytes of values, scales and zero points. */
size_t ft_groupwise_weight_bytes(const ft_weight_matrix *matrix,
                                 const ft_groupwise_options *options);

/*
 * Quantizes `matrix` as the options say into `bytes`, 64-byte aligned, as it would be written.  The
 * weight, which has the name and the shape of the matrix already, borrows them.  *error is that of
 * the values.  Errors: those of ft_groupwise_stream.
 */
FT_MUST_USE ft_status ft_groupwise_weight_init(ft_weight *weight, void *bytes,
                                               ft_groupwise_error *error,
                                               const ft_weight_matrix *matrix,
                                               const ft_groupwise_options *options, int threads,
                                               ft_error *err);

#endif
