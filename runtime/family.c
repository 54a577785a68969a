/*
 * family.c - the registry of families, and their tables expanded for one configuration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/family.h"

#include "runtime/error.h"
#include "runtime/families/families.h"
#include "runtime/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_family *const families[] = {
    &ft_family_bert,
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

int64_t ft_config_symbol(const ft_config *config, char symbol)
{
    switch (symbol) {
    case 'L':
        return config->layers;
    case 'H':
        return config->hidden;
    case 'A':
        return config->heads;
    case 'F':
        return config->ffn;
    case 'V':
        return config->vocabulary;
    case 'P':
        return config->positions;
    case 'T':
        return config->types;
    case 'C':
        return config->labels;
    case 'K':
        return config->pooler;
    case 'D':
        return config->head == FT_HEAD_DENSE || config->head == FT_HEAD_RELU;
    }
    return 0;
}

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
    ft_weight_spec *bias = &out[(*n)++];
    bias->role = FT_ROLE_VECTOR;
    bias->ndim = 1;
    bias->dim[0] = weight->dim[0];
    return expand_names(weight, rule, dialect, layer, ".weight") &&
           expand_names(bias, rule, dialect, layer, ".bias");
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
    if (!fits) {
        free(spec);
        return ft_fail(err, FT_ELIMIT, "%s: a weight's name is too long", family->name);
    }
    *out = spec;
    *count = n;
    return FT_OK;
}

/* ---- Configurations in manifests ---------------------------------------------------------- */

static const char *const heads[] = {
    [FT_HEAD_NONE] = "none",
    [FT_HEAD_POOLED] = "pooled",
    [FT_HEAD_DENSE] = "dense",
    [FT_HEAD_RELU] = "relu",
};

static const char *const embeddings[] = {
    [FT_EMBEDDING_NONE] = "none",
    [FT_EMBEDDING_FIRST] = "first",
    [FT_EMBEDDING_MEAN] = "mean",
};

/* Bounds that no real model meets; they keep sizes far from overflow. */
static const struct {
    const char *key;
    size_t field;
    int32_t low, high;
} numbers[] = {
    { "layers", offsetof(ft_config, layers), 1, 1000 },
    { "hidden", offsetof(ft_config, hidden), 1, 65536 },
    { "heads", offsetof(ft_config, heads), 1, 65536 },
    { "ffn", offsetof(ft_config, ffn), 1, 65536 },
    { "vocabulary", offsetof(ft_config, vocabulary), 1, 1 << 24 },
    { "positions", offsetof(ft_config, positions), 1, 1 << 24 },
    { "types", offsetof(ft_config, types), 0, 1 << 16 },
    { "labels", offsetof(ft_config, labels), 0, 1 << 20 },
    { "position_offset", offsetof(ft_config, position_offset), 0, 1 << 24 },
    { "padding_id", offsetof(ft_config, padding_id), -1, 1 << 24 },
};

void ft_config_bounds(size_t field, int32_t *low, int32_t *high)
{
    size_t i = 0;
    while (i < FT_COUNT(numbers) && numbers[i].field != field)
        i++;
    assert(i < FT_COUNT(numbers));
    *low = numbers[i].low;
    *high = numbers[i].high;
}

static int32_t *number_at(ft_config *config, size_t i)
{
    return (int32_t *) (void *) ((char *) config + numbers[i].field);
}

json_t *ft_config_to_json(const ft_config *config)
{
    json_t *json = json_object();
    ft_config copy = *config;
    bool fine = json != NULL;
    for (size_t i = 0; i < FT_COUNT(numbers); i++)
        fine = fine &&
               json_object_set_new(json, numbers[i].key, json_integer(*number_at(&copy, i))) == 0;
    fine =
        fine && json_object_set_new(json, "eps", json_real((double) config->eps)) == 0 &&
        json_object_set_new(json, "activation",
                            json_string(ft_activation_name(config->activation))) == 0 &&
        json_object_set_new(json, "pooler", json_boolean(config->pooler)) == 0 &&
        json_object_set_new(json, "head", json_string(heads[config->head])) == 0 &&
        json_object_set_new(json, "embedding", json_string(embeddings[config->embedding])) == 0 &&
        json_object_set_new(json, "normalize", json_boolean(config->normalize)) == 0;
    if (fine)
        return json;
    json_decref(json);
    return NULL;
}

static ft_status read_number(ft_config *out, const json_t *json, size_t i, const char *what,
                             ft_error *err)
{
    const json_t *value = json_object_get(json, numbers[i].key);
    if (!json_is_integer(value))
        return ft_fail(err, FT_EFORMAT, "%s: config: no whole number \"%s\"", what, numbers[i].key);
    json_int_t n = json_integer_value(value);
    if (n < numbers[i].low || n > numbers[i].high)
        return ft_fail(err, FT_EFORMAT,
                       "%s: config: \"%s\" is %" JSON_INTEGER_FORMAT ", expected %d to %d", what,
                       numbers[i].key, n, numbers[i].low, numbers[i].high);
    *number_at(out, i) = (int32_t) n;
    return FT_OK;
}

/* Index of the word stored under `key` among `count` words, or -1. */
static int read_word(const json_t *json, const char *key, const char *const *words, int count)
{
    const char *word = json_string_value(json_object_get(json, key));
    for (int i = 0; word != NULL && i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

/* A row of equal values has no variance: what is added to it must be more than 0, in float too. */
static bool is_eps(double value)
{
    return value > 0.0 && value < 1.0 && (float) value > 0.0f;
}

static ft_status read_words(ft_config *out, const json_t *json, const char *what, ft_error *err)
{
    const char *activation = json_string_value(json_object_get(json, "activation"));
    int head = read_word(json, "head", heads, FT_COUNT(heads));
    int embedding = read_word(json, "embedding", embeddings, FT_COUNT(embeddings));
    const json_t *pooler = json_object_get(json, "pooler");
    const json_t *normalize = json_object_get(json, "normalize");
    const char *bad = activation == NULL || !ft_activation_parse(activation, &out->activation)
                          ? "activation"
                      : head < 0                                                 ? "head"
                      : embedding < 0                                            ? "embedding"
                      : !is_eps(json_number_value(json_object_get(json, "eps"))) ? "eps"
                      : !json_is_boolean(pooler)                                 ? "pooler"
                      : !json_is_boolean(normalize)                              ? "normalize"
                                                                                 : NULL;
    if (bad != NULL)
        return ft_fail(err, FT_EFORMAT, "%s: config: \"%s\" is absent or unknown", what, bad);
    out->head = (ft_head) head;
    out->embedding = (ft_embedding) embedding;
    out->eps = (float) json_number_value(json_object_get(json, "eps"));
    out->pooler = json_is_true(pooler);
    out->normalize = json_is_true(normalize);
    return FT_OK;
}

ft_status ft_config_check(const ft_config *config, const char *what, ft_error *err)
{
    if (config->hidden % config->heads != 0)
        return ft_fail(err, FT_EFORMAT, "%s: config: %d heads do not divide %d columns", what,
                       config->heads, config->hidden);
    if (config->position_offset >= config->positions)
        return ft_fail(err, FT_EFORMAT, "%s: config: position offset %d, but only %d positions",
                       what, config->position_offset, config->positions);
    /* Where positions have an offset, padding tokens have the position of their id. */
    if (config->position_offset > 0 && config->padding_id >= config->positions)
        return ft_fail(err, FT_EFORMAT, "%s: config: padding id %d has no position, there are %d",
                       what, config->padding_id, config->positions);
    if ((config->labels > 0) != (config->head != FT_HEAD_NONE))
        return ft_fail(err, FT_EFORMAT, "%s: config: %d labels, but head %s", what, config->labels,
                       heads[config->head]);
    if (config->head == FT_HEAD_POOLED && !config->pooler)
        return ft_fail(err, FT_EFORMAT, "%s: config: the head needs a pooler", what);
    if (config->normalize && config->embedding == FT_EMBEDDING_NONE)
        return ft_fail(err, FT_EFORMAT, "%s: config: no embedding to normalize", what);
    return FT_OK;
}

ft_status ft_config_from_json(ft_config *out, const json_t *json, const char *what, ft_error *err)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < FT_COUNT(numbers); i++)
        FT_TRY(read_number(out, json, i, what, err));
    FT_TRY(read_words(out, json, what, err));
    return ft_config_check(out, what, err);
}
