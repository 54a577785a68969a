/*
 * device_rounding.h - GPTQ and GPTAQ on a device: statistics, factors and rounding stay in its
 * memory.
 *
 * Inputs are taken in the order of the forward pass, as GPTAQ takes them on the CPU (refine.h). The
 * quantized prefix of GPTAQ is a second float model on the device, in which dequantized matrices
 * replace the original ones: each weight is rounded once more, to the precision of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_DEVICE_ROUNDING_H
#define FT_CALIBRATE_WEIGHTS_DEVICE_ROUNDING_H

#include "calibrate/weights/refine.h"

/*
 * Whether the device of the model can round the matrices of a recipe: it has a quantizer, the
 * recipe rounds by GPTQ or GPTAQ without AWQ, and its activations stay float.
 */
bool ft_device_can_round(const ft_activation_stats_options *options, const ft_recipe *recipe);

/*
 * Quantizes all group-wise matrices of a refinement, which then has their bytes, in files of
 * $TMPDIR. Errors: those of the forward pass and of the device; FT_EIO.
 */
FT_MUST_USE ft_status ft_device_round(ft_refinement *refining, ft_error *err);

#endif
