/*
 * list_names.h - our names of the entries of FasterTransformer's amaxList.
 *
 * The list is positional, our calibration points and weights are named.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_LIST_NAMES_H
#define FT_CALIBRATE_AMAX_IN_LIST_NAMES_H

#include "runtime/model/model.h"

/* Whether the format can describe a model: an encoder whose feed-forward size is 4 x hidden. */
bool ft_amax_list_describes(const ft_model *model);

/* Name of the calibration point of activation `index` (FT_AMAX_LIST_INPUT ...) of a layer. */
const char *ft_amax_list_point(char name[FT_NAME], size_t layer, int index);

/* Name of weight `index` (FT_AMAX_LIST_WQ ...) of a layer. */
const char *ft_amax_list_weight(char name[FT_NAME], size_t layer, int index);

#endif
