/*
 * quantized.c - the quantizable matrices of a model, and the scheme of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/quantized.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Choosing schemes --------------------------------------------------------------------- */

/* A linear, or a head that is or may become a separate matrix. */
static bool is_quantizable(const ft_weight_spec *spec)
{
    return spec->role == FT_ROLE_LINEAR || strcmp(spec->name, FT_HEAD_WEIGHT) == 0;
}

/* Reads the values of the file: the model's own copy may be on a device. */
static void choose_scheme(ft_quantized_weight *q, const ft_model *model, const ft_weight *weight,
                          const ft_recipe *recipe)
{
    const ft_artifact_tensor *stored = ft_artifact_find(model->artifact, weight->name);
    if (stored == NULL) /* a head that the file stores as the embedding table */
        stored = ft_artifact_find(model->artifact, "embed.word");
    q->weights = (ft_weight_matrix){
        .name = weight->name,
        .dtype = stored->dtype,
        .data = stored->data,
        .rows = weight->rows,
        .cols = weight->cols,
    };
    q->scheme = ft_recipe_scheme(recipe, weight->name);
    if (ft_scheme_is_groupwise(q->scheme))
        q->options = ft_recipe_groupwise_options(recipe, q->scheme);
}

static ft_status choose_schemes(ft_quantized_weight **out, size_t *count, const ft_model *model,
                                const ft_recipe *recipe, ft_error *err)
{
    ft_weight_spec *spec;
    size_t specs;
    FT_TRY(ft_family_weights(model->family, NULL, &model->config, &spec, &specs, err));
    *out = ft_calloc(specs, sizeof **out);
    for (size_t i = 0; i < specs && *out != NULL; i++)
        if (is_quantizable(&spec[i]))
            choose_scheme(&(*out)[(*count)++], model, &model->weight[i], recipe);
    free(spec);
    return *out != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu weights", model->path, specs);
}

/* ---- Validation --------------------------------------------------------------------------- */

/* A rule that matches nothing is probably misspelt. */
static ft_status check_rules(const ft_quantized_weight *q, size_t count, const ft_model *model,
                             const ft_recipe *recipe, ft_error *err)
{
    for (size_t i = 0; i < recipe->rules; i++) {
        size_t k = 0;
        while (k < count && !ft_rule_matches(&recipe->rule[i], q[k].weights.name))
            k++;
        if (k == count)
            return ft_fail(err, FT_EARG, "%s: \"%s\" matches the name of no quantizable matrix",
                           model->path, recipe->rule[i].text);
    }
    return FT_OK;
}

static ft_status check_groups(const ft_quantized_weight *q, const ft_model *model,
                              const ft_recipe *recipe, ft_error *err)
{
    size_t group = (size_t) recipe->group;
    if (!ft_scheme_is_groupwise(q->scheme) || group == 0 || q->weights.cols % group == 0 ||
        recipe->group_pad)
        return FT_OK;
    return ft_fail(err, FT_EARG,
                   "%s: %s: %zu columns are not a multiple of group size %zu; --group-pad lets the "
                   "last group be short",
                   model->path, q->weights.name, q->weights.cols, group);
}

static ft_status check_schemes(const ft_quantized_weight *q, size_t count, const ft_model *model,
                               ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (q[i].scheme != FT_SCHEME_FLOAT)
            return FT_OK;
    return ft_fail(err, FT_EARG, "%s: the recipe quantizes no matrix", model->path);
}

ft_status ft_quantized_weights_new(ft_quantized_weight **out, size_t *count, const ft_model *model,
                                   const ft_recipe *recipe, ft_error *err)
{
    *out = NULL;
    *count = 0;
    if (recipe->quantized_head && !model->has_cache)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: a quantized head is for decoders; family %s is not one", model->path,
                       model->family->name);
    if (recipe->quantized_head && !ft_model_generates(model))
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: a quantized head is for text generation; this decoder embeds texts",
                       model->path);
    FT_TRY(choose_schemes(out, count, model, recipe, err));
    FT_TRY(check_rules(*out, *count, model, recipe, err));
    for (size_t i = 0; i < *count; i++)
        FT_TRY(check_groups(&(*out)[i], model, recipe, err));
    return check_schemes(*out, *count, model, err);
}

void ft_quantized_weights_free(ft_quantized_weight *quantized, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(quantized[i].scale);
    free(quantized);
}

/* ---- Scales ------------------------------------------------------------------------------- */

ft_status ft_quantized_weights_compute_scales(ft_quantized_weight *quantized, size_t count,
                                              ft_error *err)
{
    for (size_t i = 0; i < count; i++) {
        ft_quantized_weight *q = &quantized[i];
        if (!ft_scheme_is_int8(q->scheme) || q->scale != NULL)
            continue;
        q->scale = ft_calloc(q->weights.rows, sizeof *q->scale);
        if (q->scale == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory for scales", q->weights.name);
        FT_TRY(ft_weight_matrix_scales(q->scale, &q->weights, err));
    }
    return FT_OK;
}

/* ---- Queries ------------------------------------------------------------------------------ */

ft_quantized_weight *ft_quantized_weights_find(ft_quantized_weight *quantized, size_t count,
                                               const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(quantized[i].weights.name, name) == 0)
            return &quantized[i];
    return NULL;
}

bool ft_quantized_weights_any(const ft_quantized_weight *quantized, size_t count, ft_scheme scheme)
{
    for (size_t i = 0; i < count; i++)
        if (quantized[i].scheme == scheme)
            return true;
    return false;
}

bool ft_quantized_weights_any_groupwise(const ft_quantized_weight *quantized, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ft_scheme_is_groupwise(quantized[i].scheme))
            return true;
    return false;
}
