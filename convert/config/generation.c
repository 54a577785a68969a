/*
 * generation.c - read special tokens from config.json and generation_config.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/generation.h"

#include "convert/config/config_reader.h"
#include "convert/config/json.h"
#include "runtime/mem.h"

/* ---- Unsupported settings ------------------------------------------------------------------ */

static const struct {
    const char *key, *must;
} unsupported[] = {
    { "begin_suppress_tokens", "null" },
    { "constraints", "null" },
    { "dola_layers", "null" },
    { "encoder_no_repeat_ngram_size", "0" },
    { "encoder_repetition_penalty", "1" },
    { "epsilon_cutoff", "0" },
    { "eta_cutoff", "0" },
    { "exponential_decay_length_penalty", "null" },
    { "force_words_ids", "null" },
    { "forced_decoder_ids", "null" },
    { "guidance_scale", "1" },
    { "penalty_alpha", "null" },
    { "sequence_bias", "null" },
    { "stop_strings", "null" },
    { "token_healing", "false" },
    { "top_h", "null" },
    { "typical_p", "1" },
    { "watermarking_config", "null" },
};

static void check_unsupported(const ft_config_reader *r)
{
    for (size_t i = 0; i < FT_COUNT(unsupported); i++)
        if (!ft_config_is_ignored(r, unsupported[i].key))
            ft_config_require_value(r, unsupported[i].key, unsupported[i].must);
}

/* ---- Ids ------------------------------------------------------------------------------------ */

/* An optional id; `fallback` is its default. */
static int32_t read_id(const ft_config_reader *r, const char *key, int32_t fallback)
{
    const json_t *value = ft_config_get(r, key);
    int32_t id = fallback;
    if (value != NULL)
        ft_config_read_token_id(r, key, value, &id);
    return id;
}

/* Without a decoder_start_token_id, transformers starts with the BOS token. */
static void read_ids(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    bool has_start = ft_config_get(r, "decoder_start_token_id") != NULL;
    config->decoder_start_id =
        read_id(r, has_start ? "decoder_start_token_id" : "bos_token_id", config->decoder_start_id);
    config->pad_id = read_id(r, "pad_token_id", config->pad_id);
    config->forced_bos_id = read_id(r, "forced_bos_token_id", -1);
    config->forced_eos_id = read_id(r, "forced_eos_token_id", -1);
}

/* ---- Banned tokens -------------------------------------------------------------------------- */

static bool contains_id(const json_t *ids, json_int_t id)
{
    if (!json_is_array(ids))
        return json_is_integer(ids) && json_integer_value(ids) == id;
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (json_integer_value(json_array_get(ids, i)) == id)
            return true;
    return false;
}

static bool is_suppressed(const ft_config *config, int32_t id)
{
    for (int i = 0; i < config->num_banned; i++)
        if (config->banned[i] == id)
            return true;
    return false;
}

static void suppress(const ft_config_reader *r, const char *key, const json_t *value)
{
    ft_config *config = &r->out->config;
    int32_t id;
    if (!ft_config_read_token_id(r, key, value, &id) || is_suppressed(config, id))
        return;
    if (config->num_banned == FT_MAX_BANNED)
        ft_messages_add(r->problems, FT_ELIMIT, "%s: %s: more than %d banned tokens", r->label, key,
                        FT_MAX_BANNED);
    else
        config->banned[config->num_banned++] = id;
}

/*
 * A bad word is a list of tokens; only single tokens can be suppressed. EOS tokens among them are
 * skipped.
 */
static void read_bad_words(const ft_config_reader *r)
{
    static const char key[] = "bad_words_ids";
    const json_t *words = ft_config_get(r, key), *ends = ft_config_get(r, "eos_token_id");
    const json_t *word;
    size_t i;
    if (words == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(words)) {
        ft_config_fail_value(r, key, words, "a list of lists of ids");
        return;
    }
    json_array_foreach(words, i, word)
    {
        if (!json_is_array(word) || json_array_size(word) == 0)
            ft_config_fail_value(r, key, words, "a list of lists of ids");
        else if (json_array_size(word) > 1)
            ft_messages_add(r->problems, FT_EUNSUPPORTED,
                            "%s: %s: word %zu has %zu tokens, only 1 is supported", r->label, key,
                            i, json_array_size(word));
        else if (!contains_id(ends, json_integer_value(json_array_get(word, 0))))
            suppress(r, key, word);
    }
}

static void read_suppressed(const ft_config_reader *r)
{
    static const char key[] = "suppress_tokens";
    const json_t *ids = ft_config_get(r, key), *id;
    size_t i;
    if (ids == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(ids))
        ft_config_fail_value(r, key, ids, "a list of ids");
    json_array_foreach(ids, i, id) suppress(r, key, id);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static json_t *parse(const ft_text_source *file, ft_messages *problems)
{
    return ft_json_parse(file->text, file->bytes, JSON_OBJECT, file->name, problems);
}

/* Without an EOS token, every generation would run to the maximum length. */
static void check_end(const ft_config_reader *config, const ft_config_reader *generation)
{
    if (ft_config_get(config, "eos_token_id") == NULL &&
        ft_config_get(generation, "eos_token_id") == NULL)
        ft_messages_add(config->problems, FT_EFORMAT, "%s: no eos_token_id, which a %s needs",
                        config->label, config->architecture->model_type);
}

static void read_settings(const ft_config_reader *r, bool is_generation)
{
    ft_config *config = &r->out->config;
    ft_error err;
    if (is_generation)
        read_ids(r);
    read_bad_words(r);
    read_suppressed(r);
    check_unsupported(r);
    if (r->problems->count == 0 && ft_config_check(config, r->label, &err) != FT_OK)
        ft_messages_add_error(r->problems, &err);
}

void ft_generation_config_read(ft_hf_model *hf, const ft_text_source *config,
                               const ft_text_source *generation, const char *const *ignored,
                               ft_messages *problems)
{
    const ft_text_source *source = generation != NULL ? generation : config;
    const ft_architecture *architecture = hf->architecture;
    ft_config_reader config_json = {
        parse(config, problems), config->name, ignored, architecture, hf, problems
    };
    ft_config_reader source_json = {
        parse(source, problems), source->name, ignored, architecture, hf, problems
    };
    if (config_json.json != NULL && source_json.json != NULL) {
        check_end(&config_json, &source_json);
        read_settings(&source_json, generation != NULL);
    }
    json_decref(config_json.json);
    json_decref(source_json.json);
}
