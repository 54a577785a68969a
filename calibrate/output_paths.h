/*
 * output_paths.h - outputs must not replace inputs, nor each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_OUTPUT_PATHS_H
#define FT_CALIBRATE_OUTPUT_PATHS_H

#include "calibrate/calibrate.h"

/* FT_EARG, with the path, if an output would replace that input. */
FT_MUST_USE ft_status ft_calibration_check_input(const ft_calibration_options *options,
                                                 const char *input, ft_error *err);

/* FT_EARG, with the path, if an output is also an input or another output. */
FT_MUST_USE ft_status ft_calibration_check_paths(const ft_calibration_options *options,
                                                 ft_error *err);

#endif
