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
} neutral[] = {
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

static void check_neutral(const ft_config_reader *r)
{
    for (size_t i = 0; i < FT_COUNT(neutral); i++)
        if (!ft_config_is_ignored(r, neutral[i].key))
            ft_config_must_be(r, neutral[i].key, neutral[i].must);
}

/* ---- Ids ------------------------------------------------------------------------------------ */

/* An optional id; `fallback` is its default. */
static int32_t read_id(const ft_config_reader *r, const char *key, int32_t otherwise)
{
    const json_t *value = ft_config_value(r, key);
    int32_t id = otherwise;
    if (value != NULL)
        ft_config_id(r, key, value, &id);
    return id;
}

/* Without a decoder_start_token_id, transformers starts with the BOS token. */
static void read_ids(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    bool has_start = ft_config_value(r, "decoder_start_token_id") != NULL;
    config->start_id =
        read_id(r, has_start ? "decoder_start_token_id" : "bos_token_id", config->start_id);
    config->pad_id = read_id(r, "pad_token_id", config->pad_id);
    config->first_id = read_id(r, "forced_bos_token_id", -1);
    config->last_id = read_id(r, "forced_eos_token_id", -1);
}

/* ---- Banned tokens -------------------------------------------------------------------------- */

static bool is_in(const json_t *ids, json_int_t id)
{
    if (!json_is_array(ids))
        return json_is_integer(ids) && json_integer_value(ids) == id;
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (json_integer_value(json_array_get(ids, i)) == id)
            return true;
    return false;
}

static bool is_banned(const ft_config *config, int32_t id)
{
    for (int i = 0; i < config->banneds; i++)
        if (config->banned[i] == id)
            return true;
    return false;
}

static void ban(const ft_config_reader *r, const char *key, const json_t *value)
{
    ft_config *config = &r->out->config;
    int32_t id;
    if (!ft_config_id(r, key, value, &id) || is_banned(config, id))
        return;
    if (config->banneds == FT_MAX_BANNED)
        ft_message(r->problems, FT_ELIMIT, "%s: %s: more than %d banned tokens", r->label, key,
                   FT_MAX_BANNED);
    else
        config->banned[config->banneds++] = id;
}

/*
 * A bad word is a list of tokens; only single tokens can be suppressed. EOS tokens among them are
 * skipped.
 */
static void read_bad_words(const ft_config_reader *r)
{
    static const char key[] = "bad_words_ids";
    const json_t *words = ft_config_value(r, key), *ends = ft_config_value(r, "eos_token_id");
    const json_t *word;
    size_t i;
    if (words == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(words)) {
        ft_config_wrong(r, key, words, "a list of lists of ids");
        return;
    }
    json_array_foreach(words, i, word)
    {
        if (!json_is_array(word) || json_array_size(word) == 0)
            ft_config_wrong(r, key, words, "a list of lists of ids");
        else if (json_array_size(word) > 1)
            ft_message(r->problems, FT_EUNSUPPORTED,
                       "%s: %s: word %zu has %zu tokens, only 1 is supported", r->label, key, i,
                       json_array_size(word));
        else if (!is_in(ends, json_integer_value(json_array_get(word, 0))))
            ban(r, key, word);
    }
}

static void read_suppressed(const ft_config_reader *r)
{
    static const char key[] = "suppress_tokens";
    const json_t *ids = ft_config_value(r, key), *id;
    size_t i;
    if (ids == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(ids))
        ft_config_wrong(r, key, ids, "a list of ids");
    json_array_foreach(ids, i, id) ban(r, key, id);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static json_t *parse(const ft_named_text *file, ft_messages *problems)
{
    return ft_json_parse(file->text, file->bytes, JSON_OBJECT, file->name, problems);
}

/* Without an EOS token, every generation would run to the maximum length. */
static void check_end(const ft_config_reader *config, const ft_config_reader *generation)
{
    if (ft_config_value(config, "eos_token_id") == NULL &&
        ft_config_value(generation, "eos_token_id") == NULL)
        ft_message(config->problems, FT_EFORMAT, "%s: no eos_token_id, which a %s needs",
                   config->label, config->dialect->model_type);
}

static void read_from(const ft_config_reader *r, bool is_generation)
{
    ft_config *config = &r->out->config;
    ft_error err;
    if (is_generation)
        read_ids(r);
    read_bad_words(r);
    read_suppressed(r);
    check_neutral(r);
    if (r->problems->count == 0 && ft_config_check(config, r->label, &err) != FT_OK)
        ft_message_error(r->problems, &err);
}

void ft_generation_read(ft_origin *origin, const ft_named_text *config,
                        const ft_named_text *generation, const char *const *ignored,
                        ft_messages *problems)
{
    const ft_named_text *said = generation != NULL ? generation : config;
    const ft_dialect *dialect = &origin->family->dialect[origin->dialect];
    ft_config_reader own = {
        parse(config, problems), config->name, ignored, dialect, origin, problems
    };
    ft_config_reader other = {
        parse(said, problems), said->name, ignored, dialect, origin, problems
    };
    if (own.json != NULL && other.json != NULL) {
        check_end(&own, &other);
        read_from(&other, generation != NULL);
    }
    json_decref(own.json);
    json_decref(other.json);
}
