/*
 * refine.h - let sample data choose the codes of matrices in blocks.
 *
 * Factors for columns are searched first, of all layers, for they change what is written early.
 * What rounding and grids need is got when it is the turn of a matrix to be written, so that sums
 * of as many layers are in memory as fit.
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
    bool *in_blocks; /* [nweight of the model] */
    ft_inputs_of of;
    ft_inputs inputs;
    ft_scaling scaling;
    size_t divided; /* inputs that got factors, of so many that could have had some */
    size_t divisible;

    /* Of the matrix whose turn it is. */
    const ft_sums *input;
    float *importance;
    ft_gptq gptq;
} ft_refining;

/*
 * Begin: find what the recipe's matrices in blocks multiply, and, if the recipe says so, factors.
 * `of` is copied.  fini takes a zeroed or failed one too.
 *
 * Errors: those of ft_inputs_need(); FT_EUNSUPPORTED where the recipe wants factors but no value
 * of the model can be divided.
 */
FT_MUST_USE ft_status ft_refining_init(ft_refining *refining, const ft_inputs_of *of,
                                       const ft_recipe *recipe, ft_quantized *quantized,
                                       size_t count, ft_error *err);
void ft_refining_fini(ft_refining *refining);

/* Have ready what quantized->how needs, before codes are made. */
FT_MUST_USE ft_status ft_refining_prepare(ft_refining *refining, ft_quantized *quantized,
                                          ft_error *err);

/* What becomes of a vector of the model: floats, or NULL where it stays as it is. */
const float *ft_refining_vector(const ft_refining *refining, const char *name);

#endif
