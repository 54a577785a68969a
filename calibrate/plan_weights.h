/*
 * plan_weights.h - gives each group-wise matrix the precision that a budget or a target leaves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_PLAN_WEIGHTS_H
#define FT_CALIBRATE_PLAN_WEIGHTS_H

#include "calibrate/job.h"

/*
 * Chooses w4a16, w8a16 or float for each matrix without a rule, by what observed samples lose at
 * the output (budget/weight_plan.h), and puts that into job->quantized and the report.  Does
 * nothing unless the options ask for it.
 *
 * Errors: FT_EARG if the budget is too small, with the smallest possible; those of quantizing,
 * opening and running models.
 */
FT_MUST_USE ft_status ft_calibration_plan_weights(ft_calibration_job *job, ft_error *err);

/*
 * Measures the written artifact on evaluation samples.  FT_EUNSUPPORTED if it misses a target,
 * unless best effort suffices.
 */
FT_MUST_USE ft_status ft_calibration_verify_weights(ft_calibration_job *job, ft_error *err);

#endif
