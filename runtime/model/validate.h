/*
 * validate.h - consistency checks between the parts of an artifact, before a plan is built.
 *
 * The readers check each part on its own: manifest, configuration, scales, ranges.  All checks of
 * combinations are here; after them the plan has everything that its kernels need.
 *
 *     state    activations                residual        amax.tsv
 *     float    -                          -               none
 *     blocks   -                          -               none
 *     int8     int8 per tensor            float or int8   one amax per point
 *     int8     int8 per tensor or token   float           one amax per point
 *     int8     int8 per token             float           none
 *
 * Only decoders may have a quantized LM head; head.weight is then stored in the recipe's format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_VALIDATE_H
#define FT_RUNTIME_MODEL_VALIDATE_H

#include "runtime/model/model.h"

/* Check that the configuration fits the model's family. */
FT_MUST_USE ft_status ft_validate_family(const ft_model *model, ft_error *err);

/* Fill in *quant from the artifact's state and recipe, except for its mode. */
FT_MUST_USE ft_status ft_validate_recipe(const ft_model *model, ft_quant_config *quant,
                                         ft_error *err);

/* Check that the LM head is stored as the recipe says; after the weights are bound. */
FT_MUST_USE ft_status ft_validate_head(const ft_model *model, ft_error *err);

/*
 * Fill in scale[model->graph.nvalue] for every calibration point with a static scale, if the model
 * has calibrated ranges. Points and ranges must match one to one.
 */
FT_MUST_USE ft_status ft_validate_scales(const ft_model *model, float *scale, ft_error *err);

#endif
