/*
 * list_out.h - FasterTransformer's amaxList of every layer, for FasterTransformer users.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_LIST_OUT_H
#define FT_CALIBRATE_AMAX_IN_LIST_OUT_H

#include "calibrate/weights/quantized.h"

typedef struct ft_amax_lists {
    float *list; /* [layers, length], owned */
    size_t layers, length;
} ft_amax_lists;

/*
 * The lists of an encoder whose feed-forward size is four times its hidden size; layers is 0 for
 * any other model, which the format cannot describe. Errors: FT_ENOMEM; FT_EFORMAT for a missing
 * weight.
 */
FT_MUST_USE ft_status ft_amax_lists_init(ft_amax_lists *out, const ft_model *model,
                                         const ft_amax_table *amax,
                                         const ft_quantized_weight *quantized, size_t count,
                                         ft_error *err);
void ft_amax_lists_fini(ft_amax_lists *lists);

#endif
