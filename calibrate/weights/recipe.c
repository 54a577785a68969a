/*
 * recipe.c - the quantization recipe: a default scheme, and rules for single matrices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/recipe.h"

#include "runtime/error.h"
#include "runtime/base/json_build.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names ------------------------------------------------------------------------------- */

static const char *const schemes[FT_NUM_SCHEMES] = {
    [FT_SCHEME_W8A8] = "w8a8",
    [FT_SCHEME_W8A8_DYNAMIC] = "w8a8-dynamic",
    [FT_SCHEME_W4A16] = "w4a16",
    [FT_SCHEME_W8A16] = "w8a16",
    [FT_SCHEME_W8A8_BLOCK] = "w8a8-block",
    [FT_SCHEME_FLOAT] = "float",
};

static const char *const clips[FT_NUM_CLIPS] = {
    [FT_CLIP_NONE] = "none",
    [FT_CLIP_MSE] = "mse",
    [FT_CLIP_IMATRIX] = "imatrix",
};

static const char *const roundings[FT_NUM_ROUNDINGS] = {
    [FT_ROUND_NEAREST] = "nearest",
    [FT_ROUND_GPTQ] = "gptq",
    [FT_ROUND_GPTAQ] = "gptaq",
};

/* Index of a word, or `count` if it is not in the list. */
static size_t find_word(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;
    while (i < count && strcmp(words[i], word) != 0)
        i++;
    return i;
}

const char *ft_scheme_name(ft_scheme scheme)
{
    return (size_t) scheme < FT_NUM_SCHEMES ? schemes[scheme] : NULL;
}

ft_status ft_scheme_parse(const char *word, ft_scheme *out, ft_error *err)
{
    size_t found = find_word(schemes, FT_NUM_SCHEMES, word);
    char known_schemes[128] = "";
    *out = (ft_scheme) found;
    if (found < FT_NUM_SCHEMES)
        return FT_OK;
    for (size_t i = 0, used = 0; i < FT_NUM_SCHEMES && used < sizeof known_schemes; i++)
        used += (size_t) snprintf(known_schemes + used, sizeof known_schemes - used, "%s%s",
                                  i > 0 ? ", " : "", schemes[i]);
    return ft_fail(err, FT_EARG, "unknown scheme \"%s\", expected one of %s", word, known_schemes);
}

bool ft_scheme_is_int8(ft_scheme scheme)
{
    return scheme == FT_SCHEME_W8A8 || scheme == FT_SCHEME_W8A8_DYNAMIC;
}

bool ft_scheme_is_groupwise(ft_scheme scheme)
{
    return !ft_scheme_is_int8(scheme) && scheme != FT_SCHEME_FLOAT;
}

const char *ft_clip_name(ft_clip clip)
{
    return (size_t) clip < FT_NUM_CLIPS ? clips[clip] : NULL;
}

bool ft_clip_parse(const char *word, ft_clip *out)
{
    size_t found = find_word(clips, FT_NUM_CLIPS, word);
    *out = (ft_clip) found;
    return found < FT_NUM_CLIPS;
}

const char *ft_rounding_name(ft_rounding rounding)
{
    return (size_t) rounding < FT_NUM_ROUNDINGS ? roundings[rounding] : NULL;
}

bool ft_rounding_parse(const char *word, ft_rounding *out)
{
    size_t found = find_word(roundings, FT_NUM_ROUNDINGS, word);
    *out = (ft_rounding) found;
    return found < FT_NUM_ROUNDINGS;
}

/* ---- Rules -------------------------------------------------------------------------------- */

void ft_recipe_fini(ft_recipe *recipe)
{
    for (size_t i = 0; i < recipe->rules; i++) {
        regfree(&recipe->rule[i].pattern);
        free(recipe->rule[i].text);
    }
    free(recipe->rule);
    memset(recipe, 0, sizeof *recipe);
}

ft_status ft_recipe_add(ft_recipe *recipe, const char *pattern, ft_scheme scheme, ft_error *err)
{
    char reason[128];
    for (const char *c = pattern; *c != '\0'; c++)
        if ((unsigned char) *c >= 0x80)
            return ft_fail(err, FT_EARG, "\"%s\": names are ASCII", pattern);
    ft_rule rule = { .text = ft_strdup(pattern), .scheme = scheme };
    if (recipe->rules == recipe->capacity) {
        ft_rule *rules_grown =
            ft_array_grow(recipe->rule, &recipe->capacity, 8, sizeof *rules_grown);
        recipe->rule = rules_grown != NULL ? rules_grown : recipe->rule;
    }
    if (rule.text == NULL || recipe->rules == recipe->capacity) {
        free(rule.text);
        return ft_fail(err, FT_ENOMEM, "no memory for a rule");
    }
    int bad = regcomp(&rule.pattern, pattern, REG_EXTENDED | REG_NOSUB);
    if (bad != 0) {
        regerror(bad, &rule.pattern, reason, sizeof reason);
        free(rule.text);
        return ft_fail(err, FT_EARG, "\"%s\": %s", pattern, reason);
    }
    recipe->rule[recipe->rules++] = rule;
    return FT_OK;
}

ft_status ft_recipe_add_text(ft_recipe *recipe, const char *text, ft_error *err)
{
    const char *separator = strrchr(text, '=');
    ft_scheme scheme;
    if (separator == NULL || separator == text)
        return ft_fail(err, FT_EARG, "\"%s\" is not REGEX=SCHEME", text);
    FT_TRY(ft_scheme_parse(separator + 1, &scheme, err));
    char *pattern = ft_strdup(text);
    if (pattern == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a rule");
    pattern[separator - text] = '\0';
    ft_status status = ft_recipe_add(recipe, pattern, scheme, err);
    free(pattern);
    return status;
}

bool ft_rule_matches(const ft_rule *rule, const char *name)
{
    return regexec(&rule->pattern, name, 0, NULL, 0) == 0;
}

/* ---- Queries ----------------------------------------------------------------------------- */

const ft_rule *ft_recipe_rule(const ft_recipe *recipe, const char *name)
{
    for (size_t i = 0; i < recipe->rules; i++)
        if (ft_rule_matches(&recipe->rule[i], name))
            return &recipe->rule[i];
    return NULL;
}

ft_scheme ft_recipe_scheme(const ft_recipe *recipe, const char *name)
{
    const ft_rule *rule = ft_recipe_rule(recipe, name);
    if (rule != NULL)
        return rule->scheme;
    bool keeps_float = !recipe->quantized_head && strcmp(name, FT_HEAD_WEIGHT) == 0;
    return keeps_float ? FT_SCHEME_FLOAT : recipe->scheme;
}

bool ft_recipe_uses(const ft_recipe *recipe, ft_scheme scheme)
{
    bool found = recipe->scheme == scheme;
    for (size_t i = 0; i < recipe->rules; i++)
        found = found || recipe->rule[i].scheme == scheme;
    return found;
}

bool ft_recipe_uses_groupwise(const ft_recipe *recipe)
{
    bool found = false;
    for (int i = 0; i < FT_NUM_SCHEMES; i++)
        found = found ||
                (ft_scheme_is_groupwise((ft_scheme) i) && ft_recipe_uses(recipe, (ft_scheme) i));
    return found;
}

bool ft_recipe_needs_data(const ft_recipe *recipe)
{
    return recipe->clip == FT_CLIP_IMATRIX || recipe->awq || recipe->round != FT_ROUND_NEAREST;
}

ft_groupwise_options ft_recipe_groupwise_options(const ft_recipe *recipe, ft_scheme scheme)
{
    return (ft_groupwise_options){
        .bits = scheme == FT_SCHEME_W4A16 ? 4 : 8,
        .group = recipe->group,
        .int8_activations = scheme == FT_SCHEME_W8A8_BLOCK,
        .asymmetric = recipe->asymmetric,
        .clip = recipe->clip != FT_CLIP_NONE,
    };
}

json_t *ft_recipe_to_json(const ft_recipe *recipe, bool is_groupwise)
{
    json_t *json = json_pack("{s:s}", "scheme", ft_scheme_name(recipe->scheme));
    if (is_groupwise) {
        ft_json_set(&json, "group", json_integer(recipe->group));
        ft_json_set(&json, "asymmetric", json_boolean(recipe->asymmetric));
        ft_json_set(&json, "clip", json_string(ft_clip_name(recipe->clip)));
        ft_json_set(&json, "scale", json_string(recipe->awq ? "awq" : "none"));
        ft_json_set(&json, "round", json_string(ft_rounding_name(recipe->round)));
    }
    json_t *rules = json_array();
    for (size_t i = 0; i < recipe->rules; i++)
        ft_json_append(&rules, json_pack("{s:s, s:s}", "tensor", recipe->rule[i].text, "scheme",
                                         ft_scheme_name(recipe->rule[i].scheme)));
    if (recipe->rules > 0)
        ft_json_set(&json, "rules", rules);
    else
        json_decref(rules);
    return json;
}
