/*
 * refine.c - data-driven group-wise quantization: AWQ, GPTQ, GPTAQ and imatrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/refine.h"

#include "calibrate/weights/awq.h"
#include "calibrate/weights/correction.h"
#include "calibrate/weights/device_rounding.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- Matrices ----------------------------------------------------------------------------- */

static int weight_of(const ft_refinement *r, const ft_quantized_weight *q)
{
    return ft_plan_find_weight(&r->stats_options.model->plan, q->weights.name);
}

static ft_input_stats *input_of(ft_refinement *r, int weight)
{
    int index = weight < 0 ? -1 : r->stats.input_of_weight[weight];
    return index < 0 ? NULL : &r->stats.input[index];
}

static ft_status find_groupwise(ft_refinement *r, ft_error *err)
{
    r->is_groupwise = ft_calloc((size_t) r->stats_options.model->nweight, sizeof *r->is_groupwise);
    if (r->is_groupwise == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu matrices", r->count);
    for (size_t i = 0; i < r->count; i++)
        if (ft_scheme_is_groupwise(r->quantized[i].scheme))
            r->is_groupwise[weight_of(r, &r->quantized[i])] = true;
    return FT_OK;
}

/* ---- AWQ --------------------------------------------------------------------------------- */

/* The linears that read an input, as inputs of the search. */
static size_t collect_readers(ft_refinement *r, const ft_input_stats *input,
                              ft_weight_matrix *weights, ft_groupwise_options *options)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        if (ft_refinement_reads(r, &r->quantized[i], input)) {
            weights[count] = r->quantized[i].weights;
            options[count++] = r->quantized[i].options;
        }
    return count;
}

/* Folds the factors, unless no scaling was best. */
static ft_status fold_factors(ft_refinement *r, ft_input_stats *input, const ft_scale_fold *fold,
                              float *factor, const ft_awq_result *result, ft_error *err)
{
    if (result->power <= 0.0) {
        free(factor);
        return FT_OK;
    }
    r->folded_inputs++;
    ft_input_stats_rescale(input, factor);
    return ft_folded_scales_add(&r->scaling, fold, factor, err);
}

static ft_status search_factors(ft_refinement *r, ft_input_stats *input, const ft_scale_fold *fold,
                                ft_error *err)
{
    ft_weight_matrix *weights = ft_calloc(r->count, sizeof *weights);
    ft_groupwise_options *options = ft_calloc(r->count, sizeof *options);
    float *factor = ft_calloc(input->cols, sizeof *factor);
    ft_awq_result result;
    ft_status status = ft_activation_stats_collect(&r->stats, input, err);
    if (status == FT_OK && (weights == NULL || options == NULL || factor == NULL))
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for factors", input->name);
    if (status == FT_OK) {
        ft_awq problem = { .fold = fold,
                           .input = input,
                           .weights = weights,
                           .options = options,
                           .count = collect_readers(r, input, weights, options),
                           .use_importance = r->recipe->clip == FT_CLIP_IMATRIX,
                           .threads = r->stats_options.threads };
        status = ft_awq_search(factor, &result, &problem, err);
    }
    free(weights);
    free(options);
    if (status != FT_OK) {
        free(factor);
        return status;
    }
    return fold_factors(r, input, fold, factor, &result, err);
}

static ft_status search_all_factors(ft_refinement *r, ft_error *err)
{
    for (size_t i = 0; i < r->stats.count; i++) {
        ft_input_stats *input = &r->stats.input[i];
        ft_scale_fold fold;
        int value = ft_plan_find(&r->stats_options.model->graph, input->name);
        if (value < 0 ||
            !ft_scale_fold_find(&fold, &r->stats_options.model->graph, value, r->is_groupwise))
            continue;
        r->foldable_inputs++;
        FT_TRY(search_factors(r, input, &fold, err));
    }
    if (r->foldable_inputs == 0)
        return ft_fail(
            err, FT_EUNSUPPORTED,
            "%s: AWQ: no input of a group-wise quantized matrix can be scaled by its producer",
            r->stats_options.model->path);
    for (size_t i = 0; i < r->count; i++) {
        int weight = weight_of(r, &r->quantized[i]);
        r->quantized[i].weights.row_factor = r->scaling.row[weight];
        r->quantized[i].weights.col_factor = r->scaling.col[weight];
    }
    return FT_OK;
}

/* ---- One input ---------------------------------------------------------------------------- */

/* Prepares what depends on an input alone; matrices with the same input share it. */
static ft_status use_statistics(ft_refinement *r, const ft_input_stats *input, ft_error *err)
{
    int workers = ft_activation_stats_workers(&r->stats_options);
    ft_gptq_fini(&r->gptq);
    free(r->importance);
    r->importance = ft_calloc(input->cols, sizeof *r->importance);
    if (r->importance == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns", input->name, input->cols);
    ft_column_importance(r->importance, input);
    return r->recipe->round == FT_ROUND_NEAREST
               ? FT_OK
               : ft_gptq_init(&r->gptq, input->moments, input->cols, workers, input->name, err);
}

static void set_options(ft_refinement *r, const ft_input_stats *input, ft_quantized_weight *q)
{
    q->options.moments = input->moments;
    q->options.importance = r->recipe->clip == FT_CLIP_IMATRIX ? r->importance : NULL;
    q->options.correction = input->cross;
    q->options.round = r->recipe->round != FT_ROUND_NEAREST ? ft_gptq_round : NULL;
    q->options.user = &r->gptq;
}

/* ---- GPTAQ: behind the quantized prefix --------------------------------------------------- */

/* The statistics of an input of the model as it is quantized so far. */
static ft_status observe_prefix(ft_refinement *r, ft_input_stats *input, ft_error *err)
{
    ft_model *prefix;
    FT_TRY(ft_prefix_open(&prefix, &r->prefix, r->stats_options.device, err));
    ft_status status = ft_activation_stats_collect_behind(&r->stats, input, prefix, err);
    ft_model_close(prefix);
    return status;
}

static ft_status prepare_rounding(ft_refinement *r, ft_input_stats *input, ft_error *err)
{
    FT_TRY(observe_prefix(r, input, err));
    FT_TRY(ft_correction_solve(input, ft_activation_stats_workers(&r->stats_options), err));
    return use_statistics(r, input, err);
}

/* Quantizes all matrices that read an input. */
static ft_status quantize_readers(ft_refinement *r, const ft_input_stats *input, ft_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        ft_quantized_weight *q = &r->quantized[i];
        if (!ft_refinement_reads(r, q, input))
            continue;
        set_options(r, input, q);
        FT_TRY(ft_prefix_quantize(&r->prefix, weight_of(r, q), q,
                                  ft_activation_stats_workers(&r->stats_options), err));
    }
    return FT_OK;
}

static ft_status quantize_in_order(ft_refinement *r, ft_error *err)
{
    FT_TRY(ft_prefix_init(&r->prefix, r->stats_options.model, &r->scaling, err));
    for (size_t i = 0; i < r->stats.count; i++) {
        FT_TRY(prepare_rounding(r, &r->stats.input[i], err));
        FT_TRY(quantize_readers(r, &r->stats.input[i], err));
    }
    return FT_OK;
}

bool ft_refinement_needs_moments(const ft_recipe *recipe)
{
    return recipe->round != FT_ROUND_NEAREST || recipe->awq;
}

/* Finds the inputs whose statistics are needed. */
static ft_status open_stats(ft_refinement *r, const ft_activation_stats_options *stats_options,
                            const ft_recipe *recipe, ft_quantized_weight *quantized, size_t count,
                            ft_error *err)
{
    *r = (ft_refinement){
        .recipe = recipe, .quantized = quantized, .count = count, .stats_options = *stats_options
    };
    r->stats_options.moments = ft_refinement_needs_moments(recipe);
    FT_TRY(find_groupwise(r, err));
    return ft_activation_stats_init(&r->stats, &r->stats_options, r->is_groupwise, err);
}

ft_status ft_refinement_collect_shard(const ft_activation_stats_options *stats_options,
                                      const ft_recipe *recipe, ft_quantized_weight *quantized,
                                      size_t count, ft_shard shard, const ft_stats_sink *sink,
                                      ft_error *err)
{
    ft_refinement r;
    ft_status status = open_stats(&r, stats_options, recipe, quantized, count, err);
    if (status == FT_OK)
        status = ft_activation_stats_collect_shard(&r.stats, shard, sink, err);
    ft_refinement_fini(&r);
    return status;
}

ft_status ft_refinement_init(ft_refinement *r, const ft_activation_stats_options *stats_options,
                             const ft_recipe *recipe, ft_quantized_weight *quantized, size_t count,
                             ft_error *err)
{
    FT_TRY(open_stats(r, stats_options, recipe, quantized, count, err));
    FT_TRY(ft_folded_scales_init(&r->scaling, stats_options->model, err));
    if (recipe->awq)
        FT_TRY(search_all_factors(r, err));
    if (ft_device_can_round(&r->stats_options, recipe))
        return ft_device_round(r, err);
    return recipe->round == FT_ROUND_GPTAQ ? quantize_in_order(r, err) : FT_OK;
}

void ft_refinement_fini(ft_refinement *r)
{
    ft_gptq_fini(&r->gptq);
    ft_prefix_fini(&r->prefix);
    ft_folded_scales_fini(&r->scaling);
    ft_activation_stats_fini(&r->stats);
    free(r->importance);
    free(r->is_groupwise);
    *r = (ft_refinement){ 0 };
}

/* ---- One matrix --------------------------------------------------------------------------- */

static ft_status prepare_input(ft_refinement *r, ft_input_stats *input, ft_error *err)
{
    if (r->input == input)
        return FT_OK;
    r->input = NULL;
    FT_TRY(ft_activation_stats_collect(&r->stats, input, err));
    FT_TRY(use_statistics(r, input, err));
    r->input = input;
    return FT_OK;
}

ft_status ft_refinement_prepare(ft_refinement *r, ft_quantized_weight *q, ft_error *err)
{
    ft_input_stats *input = input_of(r, weight_of(r, q));
    if (input == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: no linear uses it", q->weights.name);
    FT_TRY(prepare_input(r, input, err));
    set_options(r, input, q);
    return FT_OK;
}

const void *ft_refinement_bytes(const ft_refinement *r, const ft_quantized_weight *q)
{
    int weight = weight_of(r, q);
    return weight < 0 || r->prefix.quantized == NULL ? NULL : r->prefix.quantized[weight];
}

const float *ft_refinement_vector(const ft_refinement *r, const char *name)
{
    int weight =
        r->scaling.vector != NULL ? ft_plan_find_weight(&r->stats_options.model->plan, name) : -1;
    return weight < 0 ? NULL : r->scaling.vector[weight];
}
