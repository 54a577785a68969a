/*
 * quantized.h - the matrices of a model that may become codes, and what each becomes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_QUANTIZED_H
#define FT_CALIBRATE_WEIGHTS_QUANTIZED_H

#include "calibrate/weights/groupwise_stream.h"
#include "calibrate/weights/recipe.h"
#include "calibrate/weights/weights.h"
#include "runtime/model/model.h"

typedef struct ft_quantized {
    ft_weights weights; /* of the float artifact, borrowed */
    ft_scheme scheme;
    float *scale; /* int8: [rows], owned; NULL before ft_quantized_scales() */

    /* Blocks: how; who knows better may set importance and rounding before codes are made.  And
     * what it cost, once they are. */
    ft_blocks_how how;
    ft_blocks_cost cost;
} ft_quantized;

/*
 * Decide about every linear of a float model, and the head, in the order of the model's weights.
 * *out is an array of *count, to be freed with ft_quantized_free(), also after a failure.
 *
 * Errors: FT_EARG where a rule fits no matrix, two ways to scale activations meet, a group does not
 * divide the columns of a matrix (unless the recipe says that it may be short), or nothing would
 * become codes; FT_EUNSUPPORTED where the model cannot have what is asked for.
 */
FT_MUST_USE ft_status ft_quantized_new(ft_quantized **out, size_t *count, const ft_model *model,
                                       const ft_recipe *recipe, ft_error *err);
void ft_quantized_free(ft_quantized *quantized, size_t count);

/* Find the scales of those that become int8. */
FT_MUST_USE ft_status ft_quantized_scales(ft_quantized *quantized, size_t count, ft_error *err);

/* The one of this name, or NULL; and whether any has a scheme, or one of blocks. */
ft_quantized *ft_quantized_find(ft_quantized *quantized, size_t count, const char *name);
bool ft_quantized_any(const ft_quantized *quantized, size_t count, ft_scheme scheme);
bool ft_quantized_any_blocks(const ft_quantized *quantized, size_t count);

#endif
