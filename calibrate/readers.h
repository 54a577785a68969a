/*
 * readers.h - which of the observed values the int8 model quantizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_READERS_H
#define FT_CALIBRATE_READERS_H

#include "calibrate/job.h"

typedef struct ft_point_use {
    bool is_quantized;  /* the int8 model quantizes the point */
    bool per_token;     /* with a scale per token: a matrix that reads it is w8a8-dynamic */
    const char *matrix; /* first int8 matrix that reads the point, borrowed; NULL: none */
} ft_point_use;

/*
 * How the int8 model uses a calibration point. Points that it does not quantize are counted because
 * amax lists contain them: attention probabilities are quantized with a dynamic scale per row, and
 * inputs of float matrices alone stay float.
 */
ft_point_use ft_point_use_of(const ft_calibration_job *job, const char *point);

#endif
