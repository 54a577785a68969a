/*
 * readers.h - which of the values that were observed the int8 model reads as codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_READERS_H
#define FT_CALIBRATE_READERS_H

#include "calibrate/job.h"

/*
 * Whether a point of the observed model becomes codes by its calibrated range.  Others are counted
 * because lists of ranges hold them: probabilities of attention make a range of their own for each
 * row, and what float matrices alone read stays float.
 *
 *   *matrix  the first int8 matrix that multiplies it, borrowed; NULL: none
 */
bool ft_point_is_read(const ft_calibration_job *job, const char *point, const char **matrix);

#endif
