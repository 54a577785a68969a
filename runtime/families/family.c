/*
 * family.c - the registry of families, and their tables of weights expanded for one configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/families/family.h"

#include "runtime/error.h"
#include "runtime/families/families.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const ft_family *const families[] = {
    &ft_family_bert, &ft_family_llama, &ft_family_m2m100, &ft_family_marian, &ft_family_vit,
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

const ft_family *ft_family_of(const char *model_type, int *hf_arch)
{
    for (size_t i = 0; i < FT_COUNT(families); i++)
        for (size_t d = 0; d < families[i]->num_hf_archs; d++)
            if (strcmp(families[i]->hf_arch[d].model_type, model_type) == 0) {
                *hf_arch = (int) d;
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

/* Where the number of a layer stands in a name; NULL: nowhere. */
static const char *find_layer_mark(const char *name)
{
    return strpbrk(name, "*#");
}

/* Write `layer` for the star of a name, and the suffix; false when the result does not fit. */
static bool expand_name(char *out, size_t size, const char *pattern, int layer, const char *suffix)
{
    const char *mark = find_layer_mark(pattern);
    int used = mark == NULL ? snprintf(out, size, "%s%s", pattern, suffix)
                            : snprintf(out, size, "%.*s%d%s%s", (int) (mark - pattern), pattern,
                                       layer, mark + 1, suffix);
    return used >= 0 && (size_t) used < size;
}

static bool expand_names(ft_weight_spec *out, const ft_weight_rule *rule, int hf_arch, int layer,
                         const char *suffix)
{
    const char *source = hf_arch < 0 ? NULL : rule->source[hf_arch];
    return expand_name(out->name, sizeof out->name, rule->name, layer, suffix) &&
           (source == NULL || expand_name(out->source, sizeof out->source, source, layer, suffix));
}

static bool has_bias(const ft_weight_rule *rule, const ft_config *config)
{
    return rule->bias == true || ft_config_symbol(config, rule->bias) != 0;
}

/* The sizes that a shape's letters stand for, up to its end or a '/'; returns how many there are.
 */
static int expand_shape(int64_t *dim, const char *shape, const ft_config *config)
{
    int count = 0;
    for (; *shape != '\0' && *shape != '/'; shape++)
        if (*shape != ',')
            dim[count++] = ft_config_symbol(config, *shape);
    return count;
}

/* One or two specs from a rule; false when a name does not fit. */
static bool expand_rule(ft_weight_spec *out, size_t *n, const ft_weight_rule *rule, int hf_arch,
                        const ft_config *config, int layer)
{
    if (rule->when != 0 && ft_config_symbol(config, rule->when) == 0)
        return true;
    ft_weight_spec *weight = &out[(*n)++];
    weight->role = rule->role;
    const char *slash = strchr(rule->shape, '/');
    weight->ndim = expand_shape(weight->dim, rule->shape, config);
    weight->stored_ndim =
        expand_shape(weight->stored, slash != NULL ? slash + 1 : rule->shape, config);
    if (!rule->bias)
        return expand_names(weight, rule, hf_arch, layer, "");
    if (!expand_names(weight, rule, hf_arch, layer, ".weight"))
        return false;
    if (!has_bias(rule, config))
        return true;
    ft_weight_spec *bias = &out[(*n)++];
    bias->role = FT_ROLE_VECTOR;
    bias->ndim = bias->stored_ndim = 1;
    bias->dim[0] = bias->stored[0] = weight->dim[0];
    return expand_names(bias, rule, hf_arch, layer, ".bias");
}

static ft_status fail_family(const ft_family *family, const char *name, const char *what,
                             ft_error *err)
{
    return ft_fail(err, FT_EFORMAT,
                   "%s: %s would have no %s: the configuration is that of another family",
                   family->name, name, what);
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
    return find_layer_mark(rule->name) != NULL;
}

/* How often a rule is repeated. */
static int64_t rule_repeats(const ft_weight_rule *rule, const ft_config *config)
{
    const char *mark = find_layer_mark(rule->name);
    return mark == NULL ? 1 : ft_config_symbol(config, *mark == '#' ? 'E' : 'L');
}

/* Whether two rules are of the layers of one stack. */
static bool same_stack(const ft_weight_rule *a, const ft_weight_rule *b)
{
    return is_layered(a) && is_layered(b) && *find_layer_mark(a->name) == *find_layer_mark(b->name);
}

static ft_status check_layers(const ft_family *family, const ft_config *config, ft_error *err)
{
    for (size_t i = 0; i < family->nweight; i++)
        if (rule_repeats(&family->weight[i], config) == 0)
            return fail_family(family, family->weight[i].name, "layers", err);
    return FT_OK;
}

/* Names that the rules make at most, two of each. */
static size_t max_names(const ft_family *family, const ft_config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < family->nweight; i++)
        n += 2 * (size_t) rule_repeats(&family->weight[i], config);
    return n;
}

ft_status ft_family_weights(const ft_family *family, int hf_arch, const ft_config *config,
                            ft_weight_spec **out, size_t *count, ft_error *err)
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
        /* A run of rules with a star is one layer: repeat the run, not each rule. */
        const ft_weight_rule *rule = &family->weight[first];
        for (end = first + 1; end < family->nweight; end++)
            if (!same_stack(rule, &family->weight[end]))
                break;
        for (int layer = 0; layer < rule_repeats(rule, config); layer++)
            for (size_t i = first; i < end; i++)
                ok = ok && expand_rule(spec, &n, &family->weight[i], hf_arch, config, layer);
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
