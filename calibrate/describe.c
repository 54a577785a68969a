/*
 * describe.c - the quantization recipe that an artifact's manifest records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/describe.h"

#include "kernels/quant.h"
#include "runtime/base/json_build.h"

#include <string.h>

/* All activations of int8 matrices are quantized per token ... */
static json_t *dynamic_recipe(void)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i}", "weights", "int8 per channel", "activations",
                     FT_INT8_PER_TOKEN, "residual", "float", "code_min", -FT_QUANT_MAX, "code_max",
                     FT_QUANT_MAX);
}

static const char *range_method(const ft_calibration_options *options)
{
    return options->amax != NULL ? "given" : ft_method_name(options->method);
}

static bool has_per_token_entry(const ft_amax_table *amax)
{
    for (size_t i = 0; i < amax->count; i++)
        if (ft_amax_entry_is_per_token(&amax->entry[i]))
            return true;
    return false;
}

/* ... or some or all of them per tensor, with calibrated ranges. */
static json_t *static_recipe(const ft_manifest_recipe_info *info)
{
    const char *activations =
        has_per_token_entry(info->amax) ? FT_INT8_PER_TENSOR_OR_TOKEN : FT_INT8_PER_TENSOR;
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I}", "weights", "int8 per channel",
                     "activations", activations, "residual",
                     info->options->int8_residual ? "int8" : "float", "method",
                     range_method(info->options), "code_min", -FT_QUANT_MAX, "code_max",
                     FT_QUANT_MAX, "samples", (json_int_t) info->samples);
}

static const char *head_dtype(const ft_manifest_recipe_info *info)
{
    for (size_t i = 0; i < info->count; i++) {
        ft_scheme scheme = info->quantized[i].scheme;
        if (strcmp(info->quantized[i].weights.name, FT_HEAD_WEIGHT) == 0)
            return ft_scheme_is_int8(scheme)        ? "int8"
                   : ft_scheme_is_groupwise(scheme) ? "blocks"
                                                    : "float";
    }
    return "float";
}

/* How alpha was chosen: by the search, or the one that was given. */
static json_t *smooth_recipe(const ft_calibration_options *options)
{
    return options->smooth == FT_SMOOTH_ALPHA ? json_real(options->smooth_alpha)
                                              : json_string("search");
}

/* The name of a matrix as a regular expression that matches nothing else. */
static void exact_pattern(char pattern[2 * FT_NAME + 3], const char *name)
{
    *pattern++ = '^';
    for (; *name != '\0'; *pattern++ = *name++)
        if (*name == '.')
            *pattern++ = '\\';
    memcpy(pattern, "$", 2);
}

/* What was chosen for single matrices, as rules: with them --tensor gives the same model. */
static void describe_plan(json_t **json, const ft_manifest_recipe_info *info)
{
    json_t *rules = json_incref(json_object_get(*json, "rules"));
    char pattern[2 * FT_NAME + 3];
    if (rules == NULL)
        rules = json_array();
    for (size_t i = 0; i < info->count; i++) {
        const ft_quantized_weight *q = &info->quantized[i];
        if (q->scheme == ft_recipe_scheme(info->recipe, q->weights.name))
            continue;
        exact_pattern(pattern, q->weights.name);
        ft_json_append(&rules, json_pack("{s:s, s:s}", "tensor", pattern, "scheme",
                                         ft_scheme_name(q->scheme)));
    }
    ft_json_set(json, "bits_per_weight", json_real(info->bits));
    ft_json_set(json, "rules", rules);
}

/* Encoders have no quantizable head, and their recipes do not mention one. */
json_t *ft_manifest_recipe(const ft_manifest_recipe_info *info)
{
    bool is_dynamic =
        ft_quantized_weights_any(info->quantized, info->count, FT_SCHEME_W8A8_DYNAMIC);
    json_t *json = info->amax != NULL ? static_recipe(info)
                   : is_dynamic       ? dynamic_recipe()
                                      : json_object();
    if (info->smoothed)
        ft_json_set(&json, "smooth", smooth_recipe(info->options));
    if (info->has_head)
        ft_json_set(&json, "head", json_string(head_dtype(info)));
    if (ft_recipe_needs_data(info->recipe))
        ft_json_set(&json, "samples", json_integer((json_int_t) info->samples));
    bool is_groupwise = ft_quantized_weights_any_groupwise(info->quantized, info->count);
    if (info->recipe->rules == 0 && !is_groupwise)
        return json;
    ft_json_merge(&json, ft_recipe_to_json(info->recipe, is_groupwise));
    if (info->bits > 0.0)
        describe_plan(&json, info);
    return json;
}
