/*
 * write_model.h - writes the quantized model to the output, or to a draft that is evaluated first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WRITE_MODEL_H
#define FT_CALIBRATE_WRITE_MODEL_H

#include "calibrate/job.h"

/*
 * Writes the draft if the model is evaluated from its artifact, or else the output if there is one,
 * up to but not including ft_artifact_commit(). Errors of quantizing and writing.
 */
FT_MUST_USE ft_status ft_calibration_write_model(ft_calibration_job *j, ft_error *err);

/* Writes the output from the evaluated draft, if there are both. */
FT_MUST_USE ft_status ft_calibration_finish_draft(ft_calibration_job *j, ft_error *err);

#endif
