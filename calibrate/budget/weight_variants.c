/*
 * weight_variants.c - the float model with some matrices quantized in memory, each to a scheme of
 * its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/budget/weight_variants.h"

#include "calibrate/weights/device_rounding.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status copy_matrices(ft_weight_variants *v, ft_error *err)
{
    size_t count = v->options.count;
    v->quantized = ft_calloc(count, sizeof *v->quantized);
    v->weight = ft_calloc(count, sizeof *v->weight);
    if (v->quantized == NULL || v->weight == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu matrices", count);
    for (size_t i = 0; i < count; i++) {
        const ft_quantized_weight *from = &v->options.quantized[i];
        v->quantized[i] = (ft_quantized_weight){ .weights = from->weights,
                                                 .scheme = from->scheme,
                                                 .options = from->options };
        v->weight[i] = ft_plan_find_weight(&v->real->plan, from->weights.name);
    }
    return FT_OK;
}

/* The statistics are those of matrices that may become group-wise, whatever they are now. */
static ft_status prepare_refinement(ft_weight_variants *v, ft_error *err)
{
    v->recipe.awq = false;
    if (v->recipe.round == FT_ROUND_GPTAQ)
        v->recipe.round = FT_ROUND_GPTQ;
    if (v->options.stats != NULL && ft_device_can_round(v->options.stats, &v->recipe))
        v->recipe.round = FT_ROUND_NEAREST;
    if (v->options.stats == NULL || !ft_recipe_needs_data(&v->recipe))
        return FT_OK;
    return ft_refinement_init(&v->refining, v->options.stats, &v->recipe, v->quantized,
                              v->options.count, err);
}

/* Nothing is quantized yet. */
static ft_status keep_originals(ft_weight_variants *v, ft_error *err)
{
    v->original = ft_calloc(v->prefix.nweight, sizeof *v->original);
    v->kept = ft_calloc(v->options.count, sizeof *v->kept);
    if (v->original == NULL || v->kept == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weights", v->prefix.nweight);
    memcpy(v->original, v->prefix.weight, v->prefix.nweight * sizeof *v->original);
    for (size_t i = 0; i < v->options.count; i++)
        v->quantized[i].scheme = FT_SCHEME_FLOAT;
    return FT_OK;
}

ft_status ft_weight_variants_init(ft_weight_variants *v, const ft_weight_variants_options *options,
                                  ft_error *err)
{
    const ft_quant_config real = { .mode = FT_MODE_FLOAT,
                                   .quantized_head = options->quantized_head };
    const ft_model_options where = { .device = options->device };
    *v = (ft_weight_variants){ .options = *options, .recipe = *options->recipe };
    FT_TRY(ft_model_open_with_config(&v->real, options->path, &where, &real, err));
    FT_TRY(copy_matrices(v, err));
    FT_TRY(prepare_refinement(v, err));
    FT_TRY(ft_folded_scales_init(&v->unscaled, v->real, err));
    FT_TRY(ft_prefix_init(&v->prefix, v->real, &v->unscaled, err));
    return keep_originals(v, err);
}

void ft_weight_variants_fini(ft_weight_variants *v)
{
    for (size_t i = 0; i < v->options.count && v->kept != NULL; i++)
        free(v->kept[i].bytes);
    free(v->kept);
    free(v->original);
    ft_prefix_fini(&v->prefix);
    ft_folded_scales_fini(&v->unscaled);
    ft_refinement_fini(&v->refining);
    free(v->quantized);
    free(v->weight);
    ft_model_close(v->real);
    *v = (ft_weight_variants){ .real = NULL };
}

/* ---- Schemes ------------------------------------------------------------------------------ */

static ft_status quantize(ft_weight_variants *v, size_t index, ft_error *err)
{
    ft_quantized_weight *q = &v->quantized[index];
    q->options = ft_recipe_groupwise_options(&v->recipe, q->scheme);
    if (v->refining.recipe != NULL)
        FT_TRY(ft_refinement_prepare(&v->refining, q, err));
    return ft_prefix_quantize(&v->prefix, v->weight[index], q, v->options.threads, err);
}

/* Makes a matrix float again, but keeps its 4 bits for later. */
static void restore(ft_weight_variants *v, size_t index)
{
    int weight = v->weight[index];
    if (v->quantized[index].scheme == FT_SCHEME_W4A16)
        v->kept[index] = (ft_kept_weight){ v->prefix.quantized[weight], v->prefix.weight[weight] };
    else
        free(v->prefix.quantized[weight]);
    v->prefix.quantized[weight] = NULL;
    v->prefix.weight[weight] = v->original[weight];
}

static void use_kept(ft_weight_variants *v, size_t index)
{
    v->prefix.quantized[v->weight[index]] = v->kept[index].bytes;
    v->prefix.weight[v->weight[index]] = v->kept[index].weight;
    v->kept[index].bytes = NULL;
}

ft_status ft_weight_variants_set(ft_weight_variants *v, size_t index, ft_scheme scheme,
                                 ft_error *err)
{
    if (v->quantized[index].scheme == scheme)
        return FT_OK;
    restore(v, index);
    v->quantized[index].scheme = scheme;
    if (scheme == FT_SCHEME_FLOAT)
        return FT_OK;
    if (scheme == FT_SCHEME_W4A16 && v->kept[index].bytes != NULL) {
        use_kept(v, index);
        return FT_OK;
    }
    return quantize(v, index, err);
}

uint64_t ft_scheme_bytes(const ft_recipe *recipe, const ft_weight_matrix *weights, ft_scheme scheme)
{
    if (scheme == FT_SCHEME_FLOAT)
        return (uint64_t) weights->rows * weights->cols * ft_dtype_size(weights->dtype);
    const ft_groupwise_options options = ft_recipe_groupwise_options(recipe, scheme);
    ft_groupwise_bytes bytes = ft_groupwise_stream_bytes(weights, &options);
    return (uint64_t) bytes.quantized + bytes.scales + bytes.zeros;
}

/* ---- Loss --------------------------------------------------------------------------------- */

ft_status ft_weight_variants_measure(double *loss, const ft_weight_variants *v,
                                     const ft_reference *reference, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_prefix_open(&model, &v->prefix, v->options.device, err));
    ft_status status = ft_loss_measure(loss, reference, model, err);
    ft_model_close(model);
    return status;
}
