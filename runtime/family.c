/*
 * family.c - the registry of families, and their tables of weights expanded for one configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/family.h"

#include "runtime/error.h"
#include "runtime/families/families.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const ft_family *const families[] = {
    &ft_family_bert,
    &ft_family_llama,
};

const ft_family *ft_family_at(size_t index)
{
    return index < FT_COUNT(families) ? families[index] : NULL;
}

const ft_family *ft_family_find(const char *name)
{
    for (size_t i = 0; i < FT_COUNT(families); i++)
        if (strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

const ft_family *ft_family_of(const char *model_type, int *dialect)
{
    for (size_t i = 0; i < FT_COUNT(families); i++)
        for (size_t d = 0; d < families[i]->ndialect; d++)
            if (strcmp(families[i]->dialect[d].model_type, model_type) == 0) {
                *dialect = (int) d;
                return families[i];
            }
    return NULL;
}

/* ---- Roles -------------------------------------------------------------------------------- */

static const char *const roles[] = {
    [FT_ROLE_LINEAR] = "linear",
    [FT_ROLE_DENSE] = "dense",
    [FT_ROLE_TABLE] = "table",
    [FT_ROLE_VECTOR] = "vector",
};

const char *ft_role_name(ft_role role)
{
    return roles[role];
}

bool ft_role_parse(const char *name, ft_role *out)
{
    for (size_t i = 0; i < FT_COUNT(roles); i++)
        if (strcmp(roles[i], name) == 0) {
            *out = (ft_role) i;
            return true;
        }
    return false;
}

/* ---- Weights ------------------------------------------------------------------------------ */

/* Write `layer` for the '*' of a name, and the suffix; false when the result does not fit. */
static bool expand_name(char *out, size_t size, const char *pattern, int layer, const char *suffix)
{
    const char *star = strchr(pattern, '*');
    int used = star == NULL ? snprintf(out, size, "%s%s", pattern, suffix)
                            : snprintf(out, size, "%.*s%d%s%s", (int) (star - pattern), pattern,
                                       layer, star + 1, suffix);
    return used >= 0 && (size_t) used < size;
}

static bool expand_names(ft_weight_spec *out, const ft_weight_rule *rule, int dialect, int layer,
                         const char *suffix)
{
    const char *source = dialect < 0 ? NULL : rule->source[dialect];
    return expand_name(out->name, sizeof out->name, rule->name, layer, suffix) &&
           (source == NULL || expand_name(out->source, sizeof out->source, source, layer, suffix));
}

static bool has_bias(const ft_weight_rule *rule, const ft_config *config)
{
    return rule->bias == true || ft_config_symbol(config, rule->bias) != 0;
}

/* One or two specs from a rule; false when a name does not fit. */
static bool expand_rule(ft_weight_spec *out, size_t *n, const ft_weight_rule *rule, int dialect,
                        const ft_config *config, int layer)
{
    if (rule->when != 0 && ft_config_symbol(config, rule->when) == 0)
        return true;
    ft_weight_spec *weight = &out[(*n)++];
    weight->role = rule->role;
    for (const char *symbol = rule->shape; *symbol != '\0'; symbol++)
        if (*symbol != ',')
            weight->dim[weight->ndim++] = ft_config_symbol(config, *symbol);
    if (!rule->bias)
        return expand_names(weight, rule, dialect, layer, "");
    if (!expand_names(weight, rule, dialect, layer, ".weight"))
        return false;
    if (!has_bias(rule, config))
        return true;
    ft_weight_spec *bias = &out[(*n)++];
    bias->role = FT_ROLE_VECTOR;
    bias->ndim = 1;
    bias->dim[0] = weight->dim[0];
    return expand_names(bias, rule, dialect, layer, ".bias");
}

static ft_status check_sizes(const ft_family *family, const ft_weight_spec *spec, size_t count,
                             ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < spec[i].ndim; d++)
            if (spec[i].dim[d] == 0)
                return ft_fail(
                    err, FT_EFORMAT,
                    "%s: %s would have no elements: the configuration is that of another "
                    "family",
                    family->name, spec[i].name);
    return FT_OK;
}

static bool runs_over_layers(const ft_weight_rule *rule)
{
    return strchr(rule->name, '*') != NULL;
}

ft_status ft_family_weights(const ft_family *family, int dialect, const ft_config *config,
                            ft_weight_spec **out, size_t *count, ft_error *err)
{
    size_t capacity = 2 * family->nweight * ((size_t) config->layers + 1);
    ft_weight_spec *spec = ft_array(capacity, sizeof *spec);
    *out = NULL;
    *count = 0;
    if (spec == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weight names", capacity);

    size_t n = 0;
    bool fits = true;
    for (size_t first = 0, end; first < family->nweight; first = end) {
        /* A run of rules with '*' is one layer: repeat the run, not each rule. */
        const ft_weight_rule *rule = &family->weight[first];
        bool layered = runs_over_layers(rule);
        for (end = first + 1; end < family->nweight && layered; end++)
            if (!runs_over_layers(&family->weight[end]))
                break;
        for (int layer = 0; layer < (layered ? config->layers : 1); layer++)
            for (size_t i = first; i < end; i++)
                fits = fits && expand_rule(spec, &n, &family->weight[i], dialect, config, layer);
    }
    ft_status status =
        fits ? check_sizes(family, spec, n, err)
             : ft_fail(err, FT_ELIMIT, "%s: a weight's name is too long", family->name);
    if (status != FT_OK) {
        free(spec);
        return status;
    }
    *out = spec;
    *count = n;
    return FT_OK;
}
