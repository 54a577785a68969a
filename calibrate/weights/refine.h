/*
 * refine.h - data-driven group-wise quantization: AWQ, GPTQ and imatrix.
 *
 * AWQ factors are searched first, for all layers, because they change tensors that are written
 * early. Rounding and grids get their statistics when a matrix is about to be written, so that
 * memory holds the statistics of as many layers as fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_REFINE_H
#define FT_CALIBRATE_WEIGHTS_REFINE_H

#include "calibrate/weights/fold_ranges.h"
#include "calibrate/weights/gptq.h"
#include "calibrate/weights/activation_stats.h"

typedef struct ft_refining {
    const ft_recipe *recipe;
    ft_quantized *quantized; /* [count] */
    size_t count;
    bool *in_blocks; /* [nweight of the model]: has a group-wise scheme */
    ft_inputs_of of;
    ft_inputs inputs;
    ft_scaling scaling;
    size_t divided; /* inputs whose factors were folded, of those that could be */
    size_t divisible;

    /* Of the matrix being written. */
    const ft_sums *input;
    float *importance;
    ft_gptq gptq;
} ft_refining;

/*
 * Finds the inputs of the recipe's group-wise quantized matrices and, if the recipe uses AWQ, their
 * factors. `options` is copied. fini also accepts a zeroed or failed one.
 *
 * Errors: those of ft_activation_stats_collect(); FT_EUNSUPPORTED if the recipe uses AWQ but no
 * value of the model can be scaled.
 */
FT_MUST_USE ft_status ft_refining_init(ft_refining *refining, const ft_inputs_of *of,
                                       const ft_recipe *recipe, ft_quantized *quantized,
                                       size_t count, ft_error *err);
void ft_refining_fini(ft_refining *refining);

/* Sets the statistics in quantized->options, before the matrix is quantized. */
FT_MUST_USE ft_status ft_refining_prepare(ft_refining *refining, ft_quantized *quantized,
                                          ft_error *err);

/* The rescaled values of a vector of the model, or NULL if it is unchanged. */
const float *ft_refining_vector(const ft_refining *refining, const char *name);

#endif
