/*
 * check_budget.h - whether the precision of weights is chosen, and what that needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_CHECK_BUDGET_H
#define FT_CALIBRATE_CHECK_BUDGET_H

#include "calibrate/job.h"

/* Whether the options ask for it: a budget or target of w4a16 without int8 matrices. */
bool ft_calibration_plans_weights(const ft_calibration_job *job);

/* FT_EARG: the scheme is not w4a16, a matrix is int8, or samples are missing. */
FT_MUST_USE ft_status ft_calibration_check_budget(const ft_calibration_job *job, ft_error *err);

/*
 * Reads the file of --times.  Errors of ft_measured_times_read(); FT_EARG: another group size than
 * that of the recipe.
 */
FT_MUST_USE ft_status ft_calibration_read_times(ft_calibration_job *job, ft_error *err);

#endif
