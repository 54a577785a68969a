/*
 * map_weights.h - map the tensors of a checkpoint to the weights of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_MAP_WEIGHTS_H
#define FT_CONVERT_MAP_WEIGHTS_H

#include "convert/convert.h"

/*
 * Fill weight, bytes and unused of a conversion whose checkpoint and origin are set, and decide
 * whether the model has a pooler. `label` names the checkpoint in messages. Every problem is added
 * to `problems`.
 */
void ft_conversion_map_weights(ft_conversion *conversion, const char *label,
                               const ft_convert_options *options, ft_messages *problems);

#endif
