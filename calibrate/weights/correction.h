/*
 * correction.h - the change of weights that makes up for the errors of the quantized prefix.
 *
 * Let x be the inputs of a linear W in the original model, and xq those behind the quantized
 * prefix. The outputs of W + W M on xq come closest to those of W on x for
 *
 *   M = sum of (x - xq) xq^T . (sum of xq xq^T + damping)^-1
 *
 * which is the same for all linears that read the input. They are rounded from W + W M.
 *
 * Sources: Li et al. 2025, "GPTAQ"; Zhang et al. 2025, "Qronos".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_CORRECTION_H
#define FT_CALIBRATE_WEIGHTS_CORRECTION_H

#include "calibrate/stats/activation_stats.h"

/*
 * Replaces input->cross, [cols, cols], by M. A tenth of the mean of the diagonal is added to the
 * diagonal of the moments: with less, M fits the samples and not the model.
 *
 * Allocates cols * cols doubles. FT_ENOMEM; FT_EFORMAT if the moments are not positive definite.
 */
FT_MUST_USE ft_status ft_correction_solve(ft_input_stats *input, int threads, ft_error *err);

#endif
