/*
 * list_in.h - ranges from FasterTransformer v3.0's amaxList of all layers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_LIST_IN_H
#define FT_CALIBRATE_AMAX_IN_LIST_IN_H

#include "calibrate/amax_in/given_ranges.h"

/* Bytes of the lists of all layers of a model; 0 for a model that the format cannot describe. */
size_t ft_amax_lists_bytes(const ft_model *model);

/*
 * Adds the ranges of lists[0 .. ft_amax_lists_bytes()), of any alignment, and sets the scales of
 * int8 matrices. FT_EFORMAT if the numbers derived from an amax do not fit it: then the file is
 * something else.
 */
FT_MUST_USE ft_status ft_amax_lists_read(ft_given_ranges *ranges, const void *lists, ft_error *err);

#endif
