/*
 * validate.h - what the parts of an artifact must be to each other before a plan is made of them.
 *
 * Each part has been checked by itself when it was read: manifest, configuration, scales, ranges.
 * Which of them belong together is decided here and nowhere else; behind it a plan has all that
 * its arithmetic needs.
 *
 *     state    activations       residual        amax.tsv                 family
 *     float    -                 -               none                     any
 *     blocks   -                 -               none                     any
 *     int8     int8 per tensor   float or int8   one range a point        any
 *     int8     int8 per token    float           none                     with a cache
 *
 * A head of codes is for families that write text, and then head.weight is stored as such codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_MODEL_VALIDATE_H
#define FT_RUNTIME_MODEL_VALIDATE_H

#include "runtime/model/model.h"

/* Whether the configuration is one of the model's family. */
FT_MUST_USE ft_status ft_contract_family(const ft_model *model, ft_error *err);

/* Fill in *purpose from the artifact's state and recipe; its mode is the caller's. */
FT_MUST_USE ft_status ft_contract_recipe(const ft_model *model, ft_purpose *purpose, ft_error *err);

/* Whether the head is stored as the recipe says, once weights are bound. */
FT_MUST_USE ft_status ft_contract_head(const ft_model *model, ft_error *err);

/*
 * scale[model->graph.nvalue]: of every point of the graph, where the model's purpose has ranges.
 * Every point must have one, and every range a point; a plan of codes without ranges must be able
 * to make them in the run.
 */
FT_MUST_USE ft_status ft_contract_scales(const ft_model *model, float *scale, ft_error *err);

#endif
