/*
 * hf_config.c - read config.json by the rules of the family's architecture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/config_reader.h"

#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Architecture --------------------------------------------------------------------------- */

/* Append a word to a comma-separated list, truncated to `size`. */
static void append_to_list(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

static void fail_model_type(const ft_config_reader *r, const json_t *found)
{
    char text[FT_JSON_SNIPPET_SIZE], supported[400] = "";
    const ft_architecture *known;
    for (size_t i = 0; (known = ft_architecture_at(i)) != NULL; i++)
        append_to_list(supported, sizeof supported, known->model_type);
    if (found == NULL)
        ft_json_fail(&r->in, FT_EUNSUPPORTED, "no model_type; supported are %s", supported);
    else
        ft_json_fail(&r->in, FT_EUNSUPPORTED, "model_type %s is not supported; supported are %s",
                     ft_json_snippet(text, found), supported);
}

static bool find_architecture(ft_config_reader *r)
{
    const json_t *type = ft_json_get(&r->in, "model_type");
    if (json_is_string(type))
        r->architecture = ft_architecture_find(json_string_value(type));
    if (r->architecture == NULL) {
        fail_model_type(r, type);
        return false;
    }
    r->out->architecture = r->architecture;
    r->out->family = r->architecture->family;
    r->out->config.kind = r->out->family->kind;
    return true;
}

/*
 * The class without a language modeling head. A decoder that embeds texts needs none; whether it
 * does is in other files.
 */
static void read_base_model(const ft_config_reader *r)
{
    r->out->class_name = r->architecture->base_model;
    r->out->is_base_model = true;
    if (r->out->config.kind != FT_KIND_DECODER)
        ft_json_fail(&r->in, FT_EUNSUPPORTED,
                     "architectures is %s, which has no language modeling head; save it as %s",
                     r->architecture->base_model, r->architecture->classes[0]);
}

/* "architectures" names the class that was saved: one, or none for a bare encoder. */
static void find_class(const ft_config_reader *r)
{
    const json_t *found = ft_json_get(&r->in, "architectures");
    if (found == NULL || (json_is_array(found) && json_array_size(found) == 0))
        return;
    const char *name =
        json_array_size(found) == 1 ? json_string_value(json_array_get(found, 0)) : NULL;
    char text[FT_JSON_SNIPPET_SIZE], supported[400] = "";
    const char *base_model = r->architecture->base_model;
    if (name != NULL && base_model != NULL && strcmp(name, base_model) == 0) {
        read_base_model(r);
        return;
    }
    for (const char *const *known = r->architecture->classes; *known != NULL; known++) {
        if (name != NULL && strcmp(name, *known) == 0) {
            r->out->class_name = *known;
            return;
        }
        append_to_list(supported, sizeof supported, *known);
    }
    ft_json_fail(&r->in, FT_EUNSUPPORTED, "architectures %s is not supported; %s supports %s",
                 ft_json_snippet(text, found), r->architecture->model_type, supported);
}

/* ---- Keys with a rule ----------------------------------------------------------------------- */

/* Parse the JSON text of a rule. NULL and a problem when out of memory. */
static json_t *parse_rule_json(const ft_config_reader *r, const char *text)
{
    json_t *json = ft_json_parse(text, strlen(text), JSON_DECODE_ANY, NULL);
    if (json == NULL)
        ft_json_fail_no_memory(&r->in);
    return json;
}

/* The key's value, or the rule's default. NULL and a problem when neither exists. */
static json_t *value_or_default(const ft_config_reader *r, const ft_config_rule *rule)
{
    json_t *value = json_object_get(r->in.json, rule->key);
    if (value != NULL)
        return json_incref(value);
    if (rule->must != NULL)
        return parse_rule_json(r, rule->must);
    ft_json_fail(&r->in, FT_EFORMAT, "no %s, which a %s needs", rule->key,
                 r->architecture->model_type);
    return NULL;
}

static void *config_field(const ft_config_reader *r, const ft_config_rule *rule)
{
    return (char *) &r->out->config + rule->field;
}

/* A checkpoint must not use the internal values for "none": -1, and 0 in optional keys. */
static void read_count(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    int32_t low, high, min = rule->kind == FT_KEY_OPTIONAL ? 1 : 0;
    ft_config_int_bounds(rule->field, &low, &high);
    if (rule->kind == FT_KEY_COUNT || !json_is_null(value))
        ft_json_to_int32(&r->in, rule->key, value, low < min ? min : low, high,
                         config_field(r, rule));
}

/* Rows and columns: one number for both, or a list of two. */
static void read_pair(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    int32_t low, high, *out = config_field(r, rule);
    ft_config_int_bounds(rule->field, &low, &high);
    if (json_is_array(value) && json_array_size(value) != 2)
        ft_json_fail_value(&r->in, FT_EFORMAT, rule->key, value, "an integer, or a list of two");
    else
        for (size_t i = 0; i < 2; i++)
            if (ft_json_to_int32(&r->in, rule->key, ft_json_list_at(value, i), low, high,
                                 &out[i]) != FT_OK)
                return;
}

static void read_flag(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    ft_json_to_bool(&r->in, rule->key, value, config_field(r, rule));
}

static void read_id(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    *(int32_t *) config_field(r, rule) = -1;
    if (!json_is_null(value))
        ft_config_read_token_id(r, rule->key, value, config_field(r, rule));
}

static void check_duplicate_key(const ft_config_reader *r, const ft_config_rule *rule)
{
    char text[FT_JSON_SNIPPET_SIZE];
    const json_t *value = ft_json_get(&r->in, rule->key);
    int32_t expected_value = *(const int32_t *) config_field(r, rule);
    if (value != NULL && !(json_is_integer(value) && json_integer_value(value) == expected_value))
        ft_json_fail(&r->in, FT_EUNSUPPORTED, "%s is %s, but %s is %d", rule->key,
                     ft_json_snippet(text, value), rule->must, expected_value);
}

static void read_eps(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    double eps = json_number_value(value);
    if (eps >= 1e-30 && eps < 1.0)
        *(float *) config_field(r, rule) = (float) eps;
    else
        ft_json_fail_value(&r->in, FT_EFORMAT, rule->key, value, "a positive number below 1");
}

/*
 * Activation functions by their names in transformers. gelu_new and its variants differ only in
 * rounding.
 */
static const struct {
    const char *name;
    ft_activation activation;
} activations[] = {
    { "gelu", FT_ACT_GELU },
    { "gelu_python", FT_ACT_GELU },
    { "gelu_new", FT_ACT_GELU_TANH },
    { "gelu_fast", FT_ACT_GELU_TANH },
    { "gelu_pytorch_tanh", FT_ACT_GELU_TANH },
    { "relu", FT_ACT_RELU },
    { "silu", FT_ACT_SILU },
    { "swish", FT_ACT_SILU },
};

static void read_activation(const ft_config_reader *r, const ft_config_rule *rule,
                            const json_t *value)
{
    char text[FT_JSON_SNIPPET_SIZE], supported[200] = "";
    for (size_t i = 0; i < FT_COUNT(activations); i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), activations[i].name) == 0) {
            *(ft_activation *) config_field(r, rule) = activations[i].activation;
            return;
        }
        append_to_list(supported, sizeof supported, activations[i].name);
    }
    ft_json_fail(&r->in, FT_EUNSUPPORTED, "%s %s is not supported; supported are %s", rule->key,
                 ft_json_snippet(text, value), supported);
}

void ft_config_require_value(const ft_config_reader *reader, const char *key, const char *must)
{
    const json_t *found = ft_json_get(&reader->in, key);
    json_t *expected = parse_rule_json(reader, must);
    char text[FT_JSON_SNIPPET_SIZE];
    if (found != NULL && expected != NULL && !ft_json_equal(found, expected))
        ft_json_fail(&reader->in, FT_EUNSUPPORTED, "%s is %s, only %s is supported", key,
                     ft_json_snippet(text, found), must);
    json_decref(expected);
}

static void (*const readers[])(const ft_config_reader *, const ft_config_rule *, const json_t *) = {
    [FT_KEY_COUNT] = read_count, [FT_KEY_OPTIONAL] = read_count,
    [FT_KEY_PAIR] = read_pair,   [FT_KEY_FLAG] = read_flag,
    [FT_KEY_EPS] = read_eps,     [FT_KEY_ACTIVATION] = read_activation,
    [FT_KEY_ID] = read_id,
};

static void read_rule(const ft_config_reader *r, const ft_config_rule *rule)
{
    if (rule->kind == FT_KEY_FIXED)
        ft_config_require_value(r, rule->key, rule->must);
    if (rule->kind == FT_KEY_ALIAS)
        check_duplicate_key(r, rule);
    if (rule->kind >= FT_COUNT(readers))
        return;
    json_t *value = value_or_default(r, rule);
    if (value != NULL)
        readers[rule->kind](r, rule, value);
    json_decref(value);
}

/* ---- Decoders ------------------------------------------------------------------------------- */

static bool has_kind(const ft_config_reader *r, ft_key kind)
{
    const ft_config_rule *rule;
    for (size_t i = 0; (rule = ft_architecture_rule(r->architecture, i)) != NULL; i++)
        if (rule->kind == kind)
            return true;
    return false;
}

/* Defaults: as many key/value heads as query heads, and hidden / heads columns per head. */
static void set_default_heads(ft_config *config)
{
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    config->head_size = ft_config_head_size(config);
}

static void read_decoder(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    if (config->kind != FT_KIND_DECODER)
        return;
    ft_config_read_rope(r);
    if (has_kind(r, FT_KEY_WINDOW))
        ft_config_read_sliding_window(r);
    set_default_heads(config);
    config->qkv_bias = config->out_bias || r->architecture->qkv_bias;
    config->qk_norm = r->architecture->qk_norm;
}

/* ---- Encoder-decoders ----------------------------------------------------------------------- */

/*
 * Where position embeddings start with unused rows, max_position_embeddings counts only the rows
 * that follow.
 */
static void finish_encoder_decoder(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    config->sinusoids = r->architecture->sinusoids;
    if (!ft_config_is_encoder_decoder(config))
        return;
    config->positions += config->position_offset;
    config->head_bias = true; /* the tensors say whether there is one */
    if (config->heads > 0 && config->hidden % config->heads == 0) /* else there is no such model */
        set_default_heads(config);
}

/* ---- Images --------------------------------------------------------------------------------- */

/*
 * The sequence length of an image: its complete patches after the leading class (and distillation)
 * tokens.
 */
static void finish_vision(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    config->prefix_tokens = r->architecture->prefix_tokens;
    if (!ft_config_is_vision(config) || config->patch_height == 0 || config->patch_width == 0)
        return;
    ft_conv conv = ft_config_patches(config);
    int64_t rows = ft_patch_sequence_length(&conv, config->prefix_tokens);
    config->positions = rows < INT32_MAX ? (int32_t) rows : INT32_MAX;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void read_model(ft_config_reader *r)
{
    const ft_config_rule *rule;
    if (!find_architecture(r))
        return;
    ft_config *config = &r->out->config;
    config->padding_id = -1;
    find_class(r);
    for (size_t i = 0; (rule = ft_architecture_rule(r->architecture, i)) != NULL; i++)
        read_rule(r, rule);
    read_decoder(r);
    ft_config_read_task_head(r);
    ft_config_check_other_keys(r);
    /* With a padding_id, positions start after the padding row; otherwise at 0. */
    config->position_offset = config->padding_id + 1;
    finish_encoder_decoder(r);
    finish_vision(r);
    ft_error err;
    if (r->in.problems->count == 0 && ft_config_check(config, r->in.file, &err) != FT_OK)
        ft_messages_add_error(r->in.problems, &err);
}

ft_status ft_hf_model_read(ft_hf_model *out, const void *text, size_t bytes, const char *label,
                           const char *const *ignored, ft_messages *problems)
{
    memset(out, 0, sizeof *out);
    ft_config_reader r = { { .file = label, .problems = problems }, ignored, NULL, out };
    if (ft_json_load(&r.in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES) == FT_OK)
        read_model(&r);
    json_decref(r.in.json);
    return ft_messages_status(problems);
}
