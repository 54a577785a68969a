/*
 * family.c - the registry of families and architectures, and the expansion of weight tables for
 * a configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/family.h"

#include "runtime/error.h"
#include "runtime/families/families.h"
#include "runtime/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const ft_family *const families[] = {
#define FAMILY(name) &ft_family_##name,
#define ARCHITECTURE(name)
#include "runtime/families/families.def"
#undef FAMILY
#undef ARCHITECTURE
};

static const ft_architecture *const architectures[] = {
#define FAMILY(name)
#define ARCHITECTURE(name) &ft_architecture_##name,
#include "runtime/families/families.def"
#undef FAMILY
#undef ARCHITECTURE
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

const ft_architecture *ft_architecture_at(size_t index)
{
    return index < FT_COUNT(architectures) ? architectures[index] : NULL;
}

const ft_architecture *ft_architecture_find(const char *model_type)
{
    for (size_t i = 0; i < FT_COUNT(architectures); i++)
        if (strcmp(architectures[i]->model_type, model_type) == 0)
            return architectures[i];
    return NULL;
}

/* ---- Architectures ------------------------------------------------------------------------ */

static bool has_own_rule(const ft_architecture *architecture, const char *key)
{
    for (size_t i = 0; i < architecture->nrule; i++)
        if (strcmp(architecture->rule[i].key, key) == 0)
            return true;
    return false;
}

const ft_config_rule *ft_architecture_rule(const ft_architecture *architecture, size_t index)
{
    const ft_config_rule *rule;
    for (size_t i = 0;
         architecture->base != NULL && (rule = ft_architecture_rule(architecture->base, i)) != NULL;
         i++)
        if (!has_own_rule(architecture, rule->key) && index-- == 0)
            return rule;
    return index < architecture->nrule ? &architecture->rule[index] : NULL;
}

const char *ft_architecture_source(const ft_architecture *architecture, const char *name)
{
    for (const ft_architecture *a = architecture; a != NULL; a = a->base)
        for (size_t i = 0; i < a->nsource; i++)
            if (strcmp(a->source[i].name, name) == 0)
                return a->source[i].source;
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

/* The wildcard for the layer number in a name, or NULL. */
static const char *find_layer_wildcard(const char *name)
{
    return strpbrk(name, "*#");
}

/* Replace the wildcard of a name with `layer` and append the suffix; false: too long. */
static bool expand_name(char *out, size_t size, const char *pattern, int layer, const char *suffix)
{
    const char *wildcard = find_layer_wildcard(pattern);
    int length = wildcard == NULL ? snprintf(out, size, "%s%s", pattern, suffix)
                                  : snprintf(out, size, "%.*s%d%s%s", (int) (wildcard - pattern),
                                             pattern, layer, wildcard + 1, suffix);
    return length >= 0 && (size_t) length < size;
}

static bool expand_names(ft_weight_spec *out, const ft_weight_rule *rule,
                         const ft_architecture *architecture, int layer, const char *suffix)
{
    const char *source =
        architecture == NULL ? NULL : ft_architecture_source(architecture, rule->name);
    return expand_name(out->name, sizeof out->name, rule->name, layer, suffix) &&
           (source == NULL || expand_name(out->source, sizeof out->source, source, layer, suffix));
}

/* Evaluate a product of the family's table; an unknown factor is a bug in that table. */
static int64_t evaluate_size(const ft_config *config, const char *expression)
{
    int64_t size = ft_config_size(config, expression);
    assert(size >= 0);
    return size;
}

/* Evaluate the dimensions of a shape, up to its end or a '/'; returns their number. */
static int expand_shape(int64_t *dim, const char *shape, const ft_config *config)
{
    int count = 0;
    for (const char *at = shape;; at++) {
        dim[count++] = evaluate_size(config, at);
        at += strcspn(at, ",/");
        if (*at != ',')
            return count;
    }
}

/* Append the specs of a rule: none, the weight, or weight and bias; false: a name is too long. */
static bool expand_rule(ft_weight_spec *out, size_t *n, const ft_weight_rule *rule,
                        const ft_architecture *architecture, const ft_config *config, int layer)
{
    if (rule->when != NULL && evaluate_size(config, rule->when) == 0)
        return true;
    ft_weight_spec *weight = &out[(*n)++];
    weight->role = rule->role;
    const char *slash = strchr(rule->shape, '/');
    weight->ndim = expand_shape(weight->dim, rule->shape, config);
    weight->stored_ndim =
        expand_shape(weight->stored, slash != NULL ? slash + 1 : rule->shape, config);
    if (rule->bias == NULL)
        return expand_names(weight, rule, architecture, layer, "");
    if (!expand_names(weight, rule, architecture, layer, ".weight"))
        return false;
    if (evaluate_size(config, rule->bias) == 0)
        return true;
    ft_weight_spec *bias = &out[(*n)++];
    bias->role = FT_ROLE_VECTOR;
    bias->ndim = bias->stored_ndim = 1;
    bias->dim[0] = bias->stored[0] = weight->dim[0];
    return expand_names(bias, rule, architecture, layer, ".bias");
}

static ft_status fail_family(const ft_family *family, const char *name, const char *missing,
                             ft_error *err)
{
    return ft_fail(err, FT_EFORMAT,
                   "%s: %s would have no %s: the configuration is that of another family",
                   family->name, name, missing);
}

static ft_status check_sizes(const ft_family *family, const ft_weight_spec *spec, size_t count,
                             ft_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < spec[i].ndim; d++)
            if (spec[i].dim[d] == 0)
                return fail_family(family, spec[i].name, "elements", err);
    return FT_OK;
}

static bool is_layered(const ft_weight_rule *rule)
{
    return find_layer_wildcard(rule->name) != NULL;
}

/* Number of layers that a rule applies to; 1 without a wildcard. */
static int64_t rule_repeats(const ft_weight_rule *rule, const ft_config *config)
{
    const char *wildcard = find_layer_wildcard(rule->name);
    return wildcard == NULL ? 1 : *wildcard == '#' ? config->encoder_layers : config->layers;
}

/* Whether two rules belong to the layers of the same stack. */
static bool same_stack(const ft_weight_rule *a, const ft_weight_rule *b)
{
    return is_layered(a) && is_layered(b) &&
           *find_layer_wildcard(a->name) == *find_layer_wildcard(b->name);
}

static ft_status check_layers(const ft_family *family, const ft_config *config, ft_error *err)
{
    for (size_t i = 0; i < family->nweight; i++)
        if (rule_repeats(&family->weight[i], config) == 0)
            return fail_family(family, family->weight[i].name, "layers", err);
    return FT_OK;
}

/* Maximum number of names that the rules expand to: two each. */
static size_t max_names(const ft_family *family, const ft_config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < family->nweight; i++)
        n += 2 * (size_t) rule_repeats(&family->weight[i], config);
    return n;
}

ft_status ft_family_weights(const ft_family *family, const ft_architecture *architecture,
                            const ft_config *config, ft_weight_spec **out, size_t *count,
                            ft_error *err)
{
    *out = NULL;
    *count = 0;
    FT_TRY(check_layers(family, config, err));
    size_t capacity = max_names(family, config);
    ft_weight_spec *spec = ft_calloc(capacity, sizeof *spec);
    if (spec == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu weight names", capacity);

    size_t n = 0;
    bool ok = true;
    for (size_t first = 0, end; first < family->nweight; first = end) {
        /* Adjacent rules with the same wildcard form a layer: repeat them together. */
        const ft_weight_rule *rule = &family->weight[first];
        for (end = first + 1; end < family->nweight; end++)
            if (!same_stack(rule, &family->weight[end]))
                break;
        for (int layer = 0; layer < rule_repeats(rule, config); layer++)
            for (size_t i = first; i < end; i++)
                ok = ok && expand_rule(spec, &n, &family->weight[i], architecture, config, layer);
    }
    ft_status status =
        ok ? check_sizes(family, spec, n, err)
           : ft_fail(err, FT_ELIMIT, "%s: a weight's name is too long", family->name);
    if (status != FT_OK) {
        free(spec);
        return status;
    }
    *out = spec;
    *count = n;
    return FT_OK;
}
