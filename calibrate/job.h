/*
 * job.h - what a calibration has open, and how it is opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_JOB_H
#define FT_CALIBRATE_JOB_H

#include "calibrate/calibrate.h"
#include "calibrate/weights/quantized.h"
#include "calibrate/weights/refine.h"
#include "runtime/data/dataset.h"
#include "runtime/model/model.h"
#include "runtime/base/atomic_file.h"

/* Everything open at once; ft_calibrate() closes what there is. */
typedef struct ft_calibration_job {
    const ft_calibration_options *options;
    ft_calibration_view view;
    ft_report *report;
    ft_model *model;
    ft_dataset data, eval;
    ft_artifact_writer *writer;
    ft_output *counters, *json;
    ft_counter_set *set;
    ft_amax *amax;
    const ft_recipe *recipe;
    ft_quantized *quantized;
    size_t nquantized;
    ft_refining refining;
    bool blocks, ranges; /* whether any matrix needs these */
} ft_calibration_job;

/*
 * Open what the options name, and refuse all that can be wrong with it: outputs that cannot be
 * written, a model that does not take the recipe, samples that are not there.
 */
FT_MUST_USE ft_status ft_calibration_open(ft_calibration_job *j, ft_error *err);

/* What the float artifact is opened for. */
ft_purpose ft_calibration_purpose(const ft_calibration_job *j, ft_mode mode);

#endif
