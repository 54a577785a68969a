/*
 * quantized.h - the quantizable matrices of a model, and the scheme of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_QUANTIZED_H
#define FT_CALIBRATE_WEIGHTS_QUANTIZED_H

#include "calibrate/weights/groupwise_stream.h"
#include "calibrate/weights/recipe.h"
#include "calibrate/weights/weights.h"
#include "runtime/model/model.h"

typedef struct ft_quantized_weight {
    ft_weight_matrix weights; /* of the float artifact, borrowed */
    ft_scheme scheme;
    float *scale; /* int8: [rows], owned; NULL before ft_quantized_weights_compute_scales() */

    /*
     * Group-wise: options, whose importance and rounding may be set before quantization; and the
     * error, after it.
     */
    ft_groupwise_options options;
    ft_groupwise_error error;
} ft_quantized_weight;

/*
 * Decides the scheme of every linear of a float model, and of the head, in the order of the model's
 * weights. *out is an array of *count, to be freed with ft_quantized_weights_free(), also after a
 * failure.
 *
 * Errors: FT_EARG if a rule matches no matrix, if the group size does not divide the columns of a
 * matrix (unless the recipe allows a shorter last group), or if nothing would be quantized;
 * FT_EUNSUPPORTED if the model does not support what is requested.
 */
FT_MUST_USE ft_status ft_quantized_weights_new(ft_quantized_weight **out, size_t *count,
                                               const ft_model *model, const ft_recipe *recipe,
                                               ft_error *err);
void ft_quantized_weights_free(ft_quantized_weight *quantized, size_t count);

/* Computes the scales of int8 matrices that have none yet. */
FT_MUST_USE ft_status ft_quantized_weights_compute_scales(ft_quantized_weight *quantized,
                                                          size_t count, ft_error *err);

/* Finds a matrix by name, or NULL; and whether any has a scheme, or a group-wise one. */
ft_quantized_weight *ft_quantized_weights_find(ft_quantized_weight *quantized, size_t count,
                                               const char *name);
bool ft_quantized_weights_any(const ft_quantized_weight *quantized, size_t count, ft_scheme scheme);
bool ft_quantized_weights_any_groupwise(const ft_quantized_weight *quantized, size_t count);

#endif
