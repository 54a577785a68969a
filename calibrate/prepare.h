/*
 * prepare.h - rewrites the float model, before it is observed, as an equivalent one that quantizes
 * better.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_PREPARE_H
#define FT_CALIBRATE_PREPARE_H

#include "calibrate/job.h"
#include "calibrate/smooth/smooth.h"

/*
 * Applies SmoothQuant if the options ask for it, or, by FT_SMOOTH_AUTO, to decoders without an
 * encoder that have at least 32 samples, unless there are measured times. It needs samples of this
 * run, an int8 matrix and an input that can be scaled. The rewritten model is a temporary artifact
 * in the folder of the output, or in $TMPDIR; it replaces j->input and the open model. Unless
 * something changes, the job stays as it is.
 *
 * Errors: FT_EUNSUPPORTED if smoothing is requested and no input can be scaled; those of
 * ft_smoothquant_init() and of writing the artifact.
 */
FT_MUST_USE ft_status ft_calibration_prepare(ft_calibration_job *j, ft_error *err);

/* Whether it does so, if an input can be scaled. */
bool ft_calibration_wants_smoothing(const ft_calibration_job *j);

/* How smoothing factors are searched on the samples that are observed. */
ft_smooth_options ft_calibration_smooth_options(const ft_calibration_job *j);

#endif
