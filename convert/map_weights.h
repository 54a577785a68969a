/*
 * map_weights.h - which tensor of a checkpoint is which weight of the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_MAP_WEIGHTS_H
#define FT_CONVERT_MAP_WEIGHTS_H

#include "convert/convert.h"

/*
 * Fill weight, bytes and unused of a conversion whose checkpoint and origin are set, and settle
 * whether the model has a pooler.  `label` names the checkpoint.  Every problem is noted.
 */
void ft_conversion_find(ft_conversion *conversion, const char *label,
                        const ft_convert_options *options, ft_messages *problems);

#endif
