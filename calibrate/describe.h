/*
 * describe.h - the quantization recipe and the provenance that an artifact's manifest records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_DESCRIBE_H
#define FT_CALIBRATE_DESCRIBE_H

#include "calibrate/job.h"
#include "calibrate/weights/quantized.h"

typedef struct ft_manifest_recipe_info {
    const ft_calibration_options *options;
    const ft_recipe *recipe;
    const ft_quantized_weight *quantized;
    size_t count;
    const ft_amax_table *amax; /* NULL: no calibrated ranges */
    bool has_head;    /* the model is a decoder */
    bool smoothed;    /* by SmoothQuant */
    uint64_t samples; /* observed */
    double bits;      /* a weight, of the plan that a budget or a target led to; 0: there is none */
} ft_manifest_recipe_info;

/*
 * The recipe object of the manifest, which ft_model_open() reads; NULL without memory. The caller
 * owns it.
 */
json_t *ft_manifest_recipe(const ft_manifest_recipe_info *info);

/*
 * The provenance of the float artifact and of the calibration (runtime/container/provenance.h), with
 * the evaluation if there was one; the caller owns *out. Reads the samples of data-driven
 * quantization, and the file of given ranges, to hash them. FT_EIO; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_calibration_provenance(json_t **out, const ft_calibration_job *job,
                                                ft_error *err);

#endif
