/*
 * describe.h - the quantization recipe that an artifact's manifest records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_DESCRIBE_H
#define FT_CALIBRATE_DESCRIBE_H

#include "calibrate/calibrate.h"
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
} ft_manifest_recipe_info;

/*
 * The recipe object of the manifest, which ft_model_open() reads; NULL without memory. The caller
 * owns it.
 */
json_t *ft_manifest_recipe(const ft_manifest_recipe_info *info);

#endif
