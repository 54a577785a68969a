/*
 * describe.c - the quantization recipe that an artifact's manifest records.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/describe.h"

#include "runtime/base/json_build.h"

#include <string.h>

/* Activations of int8 matrices are quantized per token, dynamically ... */
static json_t *describe_dynamic(void)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i}", "weights", "int8 per channel", "activations",
                     "int8 per token", "residual", "float", "code_min", -127, "code_max", 127);
}

/* ... or per tensor, with calibrated ranges. */
static json_t *describe_static(const ft_description *what)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:I}", "weights", "int8 per channel",
                     "activations", "int8 per tensor", "residual",
                     what->options->int8_residual ? "int8" : "float", "method",
                     ft_method_name(what->options->method), "code_min", -127, "code_max", 127,
                     "samples", (json_int_t) what->samples);
}

static const char *head_of(const ft_description *what)
{
    for (size_t i = 0; i < what->count; i++) {
        ft_scheme scheme = what->quantized[i].scheme;
        if (strcmp(what->quantized[i].weights.name, FT_HEAD_WEIGHT) == 0)
            return ft_scheme_is_int8(scheme)     ? "int8"
                   : ft_scheme_is_blocks(scheme) ? "blocks"
                                                 : "float";
    }
    return "float";
}

/* Encoders have no quantizable head, and their recipes do not mention one. */
json_t *ft_describe(const ft_description *what)
{
    bool fixed = ft_quantized_any(what->quantized, what->count, FT_SCHEME_W8A8);
    bool dynamic = ft_quantized_any(what->quantized, what->count, FT_SCHEME_W8A8_DYNAMIC);
    json_t *json = dynamic ? describe_dynamic() : fixed ? describe_static(what) : json_object();
    if (what->has_head)
        ft_json_set(&json, "head", json_string(head_of(what)));
    if (ft_recipe_learns(what->recipe))
        ft_json_set(&json, "samples", json_integer((json_int_t) what->samples));
    if (what->recipe->rules == 0 && !ft_recipe_mentions_blocks(what->recipe))
        return json;
    ft_json_merge(&json, ft_recipe_to_json(what->recipe));
    return json;
}
