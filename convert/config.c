/*
 * config.c - read config.json by the rules of the family's dialect.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config_reader.h"

#include "convert/json.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const json_t *ft_config_value(const ft_config_reader *reader, const char *key)
{
    const json_t *value = json_object_get(reader->json, key);
    return json_is_null(value) ? NULL : value;
}

/* ---- Which model ---------------------------------------------------------------------------- */

/* Join words with ", " as far as they fit. */
static void join(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

static void unknown_model_type(const ft_config_reader *r, const json_t *found)
{
    char text[FT_JSON_TEXT], supported[400] = "";
    const ft_family *family;
    for (size_t i = 0; (family = ft_family_at(i)) != NULL; i++)
        for (size_t d = 0; d < family->ndialect; d++)
            join(supported, sizeof supported, family->dialect[d].model_type);
    if (found == NULL)
        ft_message(r->problems, FT_EUNSUPPORTED, "%s: no model_type; supported are %s", r->label,
                   supported);
    else
        ft_message(r->problems, FT_EUNSUPPORTED,
                   "%s: model_type %s is not supported; supported are %s", r->label,
                   ft_json_text(text, found), supported);
}

static bool find_family(ft_config_reader *r)
{
    const json_t *type = ft_config_value(r, "model_type");
    if (json_is_string(type))
        r->out->family = ft_family_of(json_string_value(type), &r->out->dialect);
    if (r->out->family == NULL) {
        unknown_model_type(r, type);
        return false;
    }
    r->dialect = &r->out->family->dialect[r->out->dialect];
    return true;
}

static void refuse_headless(const ft_config_reader *r)
{
    ft_message(r->problems, FT_EUNSUPPORTED,
               "%s: architectures is %s, which has no head to predict tokens; save it as %s",
               r->label, r->dialect->headless, r->dialect->architectures[0]);
}

/* "architectures" names the class that was saved: one, or none for a bare encoder. */
static void find_architecture(const ft_config_reader *r)
{
    const json_t *found = ft_config_value(r, "architectures");
    if (found == NULL || (json_is_array(found) && json_array_size(found) == 0))
        return;
    const char *name =
        json_array_size(found) == 1 ? json_string_value(json_array_get(found, 0)) : NULL;
    char text[FT_JSON_TEXT], supported[400] = "";
    if (name != NULL && r->dialect->headless != NULL && strcmp(name, r->dialect->headless) == 0) {
        refuse_headless(r);
        return;
    }
    for (const char *const *known = r->dialect->architectures; *known != NULL; known++) {
        if (name != NULL && strcmp(name, *known) == 0) {
            r->out->architecture = *known;
            return;
        }
        join(supported, sizeof supported, *known);
    }
    ft_message(r->problems, FT_EUNSUPPORTED,
               "%s: architectures %s is not supported; supported for %s is one of %s", r->label,
               ft_json_text(text, found), r->dialect->model_type, supported);
}

/* ---- Keys with a rule ----------------------------------------------------------------------- */

/* The rule's default, where the key is absent.  NULL and a problem where there is none. */
static json_t *value_or_default(const ft_config_reader *r, const ft_config_rule *rule)
{
    json_t *value = json_object_get(r->json, rule->key);
    if (value != NULL)
        return json_incref(value);
    if (rule->must != NULL)
        return json_loads(rule->must, JSON_DECODE_ANY, NULL);
    ft_message(r->problems, FT_EFORMAT, "%s: no %s, which a %s needs", r->label, rule->key,
               r->dialect->model_type);
    return NULL;
}

static void *member(const ft_config_reader *r, const ft_config_rule *rule)
{
    return (char *) &r->out->config + rule->field;
}

void ft_config_wrong(const ft_config_reader *reader, const char *key, const json_t *found,
                     const char *expected)
{
    char text[FT_JSON_TEXT];
    ft_message(reader->problems, FT_EFORMAT, "%s: %s is %s, expected %s", reader->label, key,
               ft_json_text(text, found), expected);
}

bool ft_config_whole(const ft_config_reader *reader, const char *key, const json_t *value,
                     int32_t low, int32_t high, int32_t *out)
{
    char expected[64];
    json_int_t n = json_integer_value(value);
    if (json_is_integer(value) && n >= low && n <= high) {
        *out = (int32_t) n;
        return true;
    }
    snprintf(expected, sizeof expected, "a whole number from %d to %d", low, high);
    ft_config_wrong(reader, key, value, expected);
    return false;
}

/* Our own words for "none", -1 and in what is optional 0, are nothing that a checkpoint may say. */
static void read_count(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    int32_t low, high, least = rule->kind == FT_KEY_OPTIONAL ? 1 : 0;
    ft_config_bounds(rule->field, &low, &high);
    if (rule->kind == FT_KEY_COUNT || !json_is_null(value))
        ft_config_whole(r, rule->key, value, low < least ? least : low, high, member(r, rule));
}

static void read_flag(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    if (json_is_boolean(value))
        *(bool *) member(r, rule) = json_is_true(value);
    else
        ft_config_wrong(r, rule->key, value, "true or false");
}

static void read_eps(const ft_config_reader *r, const ft_config_rule *rule, const json_t *value)
{
    double eps = json_number_value(value);
    if (eps >= 1e-30 && eps < 1.0)
        *(float *) member(r, rule) = (float) eps;
    else
        ft_config_wrong(r, rule->key, value, "a positive number below 1");
}

/* Names of transformers' activation functions.  gelu_new and its kin differ only in rounding. */
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
    char text[FT_JSON_TEXT], supported[200] = "";
    for (size_t i = 0; i < FT_COUNT(activations); i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), activations[i].name) == 0) {
            *(ft_activation *) member(r, rule) = activations[i].activation;
            return;
        }
        join(supported, sizeof supported, activations[i].name);
    }
    ft_message(r->problems, FT_EUNSUPPORTED, "%s: %s %s is not supported; supported are %s",
               r->label, rule->key, ft_json_text(text, value), supported);
}

static void check_must_be(const ft_config_reader *r, const char *key, const char *must)
{
    const json_t *found = ft_config_value(r, key);
    json_t *expected = json_loads(must, JSON_DECODE_ANY, NULL);
    char text[FT_JSON_TEXT];
    if (found != NULL && expected != NULL && !ft_json_equal(found, expected))
        ft_message(r->problems, FT_EUNSUPPORTED, "%s: %s is %s, only %s is supported", r->label,
                   key, ft_json_text(text, found), must);
    json_decref(expected);
}

static void (*const readers[])(const ft_config_reader *, const ft_config_rule *, const json_t *) = {
    [FT_KEY_COUNT] = read_count, [FT_KEY_OPTIONAL] = read_count,        [FT_KEY_FLAG] = read_flag,
    [FT_KEY_EPS] = read_eps,     [FT_KEY_ACTIVATION] = read_activation,
};

static void read_rule(const ft_config_reader *r, const ft_config_rule *rule)
{
    if (rule->kind == FT_KEY_MUST_BE)
        check_must_be(r, rule->key, rule->must);
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
    for (size_t i = 0; i < r->dialect->nrule; i++)
        if (r->dialect->rule[i].kind == kind)
            return true;
    return false;
}

/* As many heads of keys as of queries, and heads that share the columns, where nothing is said. */
static void settle_heads(ft_config *config)
{
    if (config->kv_heads == 0)
        config->kv_heads = config->heads;
    if (config->head_size == 0 && config->heads > 0)
        config->head_size = config->hidden / config->heads;
}

static void read_decoder(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    if (!has_kind(r, FT_KEY_ROPE))
        return;
    ft_config_read_rope(r);
    if (has_kind(r, FT_KEY_WINDOW))
        ft_config_read_windows(r);
    settle_heads(config);
    config->qkv_bias = config->out_bias || r->dialect->qkv_bias;
}

/* ---- All other keys ------------------------------------------------------------------------- */

/*
 * Keys that do not change what inference computes, unless the dialect has a rule for them:
 * training, bookkeeping, special tokens, text generation, optional outputs, and pooler_* of early
 * checkpoints, which nothing reads.
 */
/* clang-format off */
static const char *const harmless[] = {
    "model_type", "architectures", "id2label", "label2id", "num_labels", "_num_labels",

    "_name_or_path", "_commit_hash", "name_or_path", "transformers_version", "torch_dtype",
    "dtype", "transformers.js_config", "finetuning_task", "problem_type", "task_specific_params",
    "tokenizer_class", "language", "vocab_file", "sentence_transformers",
    "sbert_ce_default_activation_function", "sbert_ce_default_activation_fn",
    "_attn_implementation", "_attn_implementation_autoset", "attn_implementation",
    "unsloth_fixed", "unsloth_version",

    "attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout",
    "initializer_range", "initializer_factor", "layerdrop", "gradient_checkpointing",
    "keys_to_ignore_at_inference", "chunk_size_feed_forward", "tie_word_embeddings",
    "tie_encoder_decoder", "torchscript", "tf_legacy_loss", "use_bfloat16", "xla_device",

    "bos_token_id", "eos_token_id", "eos_token_ids", "sep_token_id", "cls_token_id",
    "mask_token_id", "unk_token_id", "decoder_start_token_id", "prefix",

    "use_cache", "output_past", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict", "return_dict_in_generate",

    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "remove_invalid_values", "forced_bos_token_id", "forced_eos_token_id",
    "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",

    "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type",
};
/* clang-format on */

static bool is_harmless(const char *key)
{
    for (size_t i = 0; i < FT_COUNT(harmless); i++)
        if (strcmp(harmless[i], key) == 0)
            return true;
    return false;
}

static bool has_rule(const ft_config_reader *r, const char *key)
{
    for (size_t i = 0; i < r->dialect->nrule; i++)
        if (strcmp(r->dialect->rule[i].key, key) == 0)
            return true;
    return false;
}

static bool is_ignored(const ft_config_reader *r, const char *key)
{
    for (const char *const *name = r->ignored; name != NULL && *name != NULL; name++)
        if (strcmp(*name, key) == 0)
            return true;
    return false;
}

void ft_config_refuse_unknown(const ft_config_reader *reader, const char *key, const json_t *value)
{
    char text[FT_JSON_TEXT];
    if (!ft_json_is_empty(value) && !is_ignored(reader, key))
        ft_message(reader->problems, FT_EUNSUPPORTED,
                   "%s: %s is %s, which may change the result; pass --ignore-key %s if it does not",
                   reader->label, key, ft_json_text(text, value), key);
}

static void check_other_keys(const ft_config_reader *r)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->json, key, value)
    {
        if (strcmp(key, "quantization_config") == 0)
            check_must_be(r, key, "null");
        else if (!is_harmless(key) && !has_rule(r, key))
            ft_config_refuse_unknown(r, key, value);
    }
}

/* ---- All of it ------------------------------------------------------------------------------ */

static void read_all(ft_config_reader *r)
{
    if (!find_family(r))
        return;
    ft_config *config = &r->out->config;
    config->padding_id = -1;
    find_architecture(r);
    for (size_t i = 0; i < r->dialect->nrule; i++)
        read_rule(r, &r->dialect->rule[i]);
    read_decoder(r);
    ft_config_read_head(r);
    check_other_keys(r);
    /* Where padding is not numbered, positions start behind the padding's own row; else at 0. */
    config->position_offset = config->padding_id + 1;
    ft_error err;
    if (r->problems->count == 0 && ft_config_check(config, r->label, &err) != FT_OK)
        ft_message_error(r->problems, &err);
}

ft_status ft_origin_read(ft_origin *out, const void *text, size_t bytes, const char *label,
                         const char *const *ignored, ft_messages *problems)
{
    memset(out, 0, sizeof *out);
    json_t *json = ft_json_parse(text, bytes, JSON_OBJECT, label, problems);
    ft_config_reader r = { json, label, ignored, NULL, out, problems };
    if (json != NULL)
        read_all(&r);
    json_decref(json);
    return ft_messages_status(problems);
}
