/*
 * mix_precision.h - gives activations and matrices of an int8 plan the precision that the target
 * needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIX_PRECISION_H
#define FT_CALIBRATE_MIX_PRECISION_H

#include "calibrate/job.h"

/*
 * Measures the plan of the recipe on samples that were observed and, if it misses the target,
 * changes points of the report to scales per token and matrices to scales per group or to float;
 * with a budget of time, chooses the plan of least loss within it.  report->mixed says what was
 * chosen, and what evaluation samples lose.  Does nothing without a target, nor where
 * ft_calibration_can_mix() says no.
 *
 * Errors: FT_EARG if the target does not fit the model; FT_EUNSUPPORTED if evaluation samples miss
 * a target that the user set, unless best effort suffices; those of opening and running models.
 */
FT_MUST_USE ft_status ft_calibration_mix_precision(ft_calibration_job *job, ft_error *err);

/*
 * Looks all units up in the measured times, before anything is observed; nothing if there are none,
 * or if no int8 plan is to be chosen.  FT_EARG: the file is not of this model, or the budget is too
 * small.
 */
FT_MUST_USE ft_status ft_calibration_check_times(ft_calibration_job *job, ft_error *err);

#endif
