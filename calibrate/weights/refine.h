/*
 * refine.h - data-driven group-wise quantization: AWQ, GPTQ, GPTAQ and imatrix.
 *
 * AWQ factors are searched first, for all layers, because they change tensors that are written
 * early. GPTAQ then rounds the matrices in the order of the forward pass, by GPTQ on the inputs
 * behind the quantized prefix (prefix.h), corrected for its errors (correction.h). Other grids and
 * GPTQ get their statistics when a matrix is about to be written, so that memory holds the
 * statistics of as many layers as fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_REFINE_H
#define FT_CALIBRATE_WEIGHTS_REFINE_H

#include "calibrate/weights/fold_ranges.h"
#include "calibrate/weights/gptq.h"
#include "calibrate/stats/activation_stats.h"
#include "calibrate/weights/prefix.h"
#include "runtime/graph/plan.h"

typedef struct ft_refinement {
    const ft_recipe *recipe;
    ft_quantized_weight *quantized; /* [count] */
    size_t count;
    bool *is_groupwise; /* [nweight of the model]: has a group-wise scheme */
    ft_activation_stats_options stats_options;
    ft_activation_stats stats;
    ft_folded_scales scaling;
    size_t folded_inputs; /* inputs whose factors were folded, of those that could be */
    size_t foldable_inputs;

    ft_prefix prefix; /* with GPTAQ: the quantized matrices */

    /* Of the matrix being quantized. */
    const ft_input_stats *input;
    float *importance;
    ft_gptq gptq;
} ft_refinement;

/*
 * Finds the inputs of the recipe's group-wise quantized matrices; if the recipe uses AWQ, their
 * factors; and if it uses GPTAQ, their quantized values. `options` is copied. fini also accepts a
 * zeroed or failed one.
 *
 * Errors: those of ft_activation_stats_collect(); FT_EUNSUPPORTED if the recipe uses AWQ but no
 * value of the model can be scaled.
 */
FT_MUST_USE ft_status ft_refinement_init(ft_refinement *refining,
                                         const ft_activation_stats_options *stats_options,
                                         const ft_recipe *recipe, ft_quantized_weight *quantized,
                                         size_t count, ft_error *err);
void ft_refinement_fini(ft_refinement *refining);

/* Whether the statistics of a recipe that needs data contain second moments. */
bool ft_refinement_needs_moments(const ft_recipe *recipe);

/* Hands the statistics that the recipe needs to a sink, over the samples of a shard. */
FT_MUST_USE ft_status ft_refinement_collect_shard(const ft_activation_stats_options *stats_options,
                                                  const ft_recipe *recipe,
                                                  ft_quantized_weight *quantized, size_t count,
                                                  ft_shard shard, const ft_stats_sink *sink,
                                                  ft_error *err);

/* Whether a matrix is group-wise quantized and reads an input. */
static inline bool ft_refinement_reads(const ft_refinement *r, const ft_quantized_weight *quantized,
                                       const ft_input_stats *input)
{
    bool is_groupwise = ft_scheme_is_groupwise(quantized->scheme);
    const ft_plan *plan = &r->stats_options.model->plan;
    int weight = is_groupwise ? ft_plan_find_weight(plan, quantized->weights.name) : -1;
    int index = weight < 0 ? -1 : r->stats.input_of_weight[weight];
    return index >= 0 && &r->stats.input[index] == input;
}

/* Sets the statistics in quantized->options, before the matrix is quantized. */
FT_MUST_USE ft_status ft_refinement_prepare(ft_refinement *refining, ft_quantized_weight *quantized,
                                            ft_error *err);

/* The bytes of a matrix that is quantized already, as a stream would give them; or NULL. */
const void *ft_refinement_bytes(const ft_refinement *refining,
                                const ft_quantized_weight *quantized);

/* The rescaled values of a vector of the model, or NULL if it is unchanged. */
const float *ft_refinement_vector(const ft_refinement *refining, const char *name);

#endif
