/*
 * readers.h - which of the observed values the int8 model quantizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_READERS_H
#define FT_CALIBRATE_READERS_H

#include "calibrate/job.h"

/*
 * Whether the int8 model quantizes a point with its calibrated range. Other points are counted
 * because amax lists contain them: attention probabilities are quantized with a dynamic scale per
 * row, and inputs of float matrices alone stay float.
 *
 *   *matrix  receives the first int8 matrix that reads the point, borrowed; NULL: none
 */
bool ft_point_is_quantized(const ft_calibration_job *job, const char *point, const char **matrix);

#endif
