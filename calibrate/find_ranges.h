/*
 * find_ranges.h - the ranges of activations: observed, merged from counters, or read from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_FIND_RANGES_H
#define FT_CALIBRATE_FIND_RANGES_H

#include "calibrate/job.h"

/*
 * Reads the ranges that the options name, or observes and chooses them, and then chooses which
 * activations have them. Fills in j->amax and the points of the report. *counters_only: nothing but
 * counters was requested, so no range was chosen.
 *
 * Errors: those of reading counters or ranges, and of running the model.
 */
FT_MUST_USE ft_status ft_calibration_find_ranges(ft_calibration_job *j, bool *counters_only,
                                                 ft_error *err);

#endif
