/*
 * generation.c - read special tokens from config.json and generation_config.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/generation.h"

#include "convert/config/config_reader.h"
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
    const json_t *value = ft_json_get(&r->in, key);
    int32_t id = fallback;
    if (value != NULL)
        ft_config_read_token_id(r, key, value, &id);
    return id;
}

/* Without a decoder_start_token_id, transformers starts with the BOS token. */
static void read_ids(const ft_config_reader *r)
{
    ft_config *config = &r->out->config;
    bool has_start = ft_json_get(&r->in, "decoder_start_token_id") != NULL;
    config->decoder_start_id =
        read_id(r, has_start ? "decoder_start_token_id" : "bos_token_id", config->decoder_start_id);
    config->pad_id = read_id(r, "pad_token_id", config->pad_id);
    config->forced_bos_id = read_id(r, "forced_bos_token_id", -1);
    config->forced_eos_id = read_id(r, "forced_eos_token_id", -1);
}

/* ---- Banned tokens -------------------------------------------------------------------------- */

static bool contains_id(const json_t *ids, json_int_t id)
{
    for (size_t i = 0; i < ft_json_list_size(ids); i++) {
        const json_t *known = ft_json_list_at(ids, i);
        if (json_is_integer(known) && json_integer_value(known) == id)
            return true;
    }
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
    int32_t id = -1;
    ft_config_read_token_id(r, key, value, &id);
    if (id < 0 || is_suppressed(config, id))
        return;
    if (config->num_banned == FT_MAX_BANNED)
        ft_json_fail(&r->in, FT_ELIMIT, "%s: more than %d banned tokens", key, FT_MAX_BANNED);
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
    const json_t *words = ft_json_get(&r->in, key), *ends = ft_json_get(&r->in, "eos_token_id");
    const json_t *word;
    size_t i;
    if (words == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(words)) {
        ft_json_fail_value(&r->in, FT_EFORMAT, key, words, "a list of lists of ids");
        return;
    }
    json_array_foreach(words, i, word)
    {
        if (!json_is_array(word) || json_array_size(word) == 0)
            ft_json_fail_value(&r->in, FT_EFORMAT, key, words, "a list of lists of ids");
        else if (json_array_size(word) > 1)
            ft_json_fail(&r->in, FT_EUNSUPPORTED,
                         "%s: word %zu has %zu tokens, only 1 is supported", key, i,
                         json_array_size(word));
        else if (!contains_id(ends, json_integer_value(json_array_get(word, 0))))
            suppress(r, key, word);
    }
}

static void read_suppressed(const ft_config_reader *r)
{
    static const char key[] = "suppress_tokens";
    const json_t *ids = ft_json_get(&r->in, key), *id;
    size_t i;
    if (ids == NULL || ft_config_is_ignored(r, key))
        return;
    if (!json_is_array(ids))
        ft_json_fail_value(&r->in, FT_EFORMAT, key, ids, "a list of ids");
    json_array_foreach(ids, i, id) suppress(r, key, id);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static bool load(ft_json_reader *in, const ft_text_source *file)
{
    in->file = file->name;
    return ft_json_load(in, JSON_OBJECT, file->text, file->bytes, FT_JSON_MAX_BYTES) == FT_OK;
}

/* Without an EOS token, every generation would run to the maximum length. */
static void check_end(const ft_config_reader *config, const ft_config_reader *generation)
{
    if (ft_json_get(&config->in, "eos_token_id") == NULL &&
        ft_json_get(&generation->in, "eos_token_id") == NULL)
        ft_json_fail(&config->in, FT_EFORMAT, "no eos_token_id, which a %s needs",
                     config->architecture->model_type);
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
    if (r->in.problems->count == 0 && ft_config_check(config, r->in.file, &err) != FT_OK)
        ft_messages_add_error(r->in.problems, &err);
}

void ft_generation_config_read(ft_hf_model *hf, const ft_text_source *config,
                               const ft_text_source *generation, const char *const *ignored,
                               ft_messages *problems)
{
    const ft_text_source *source = generation != NULL ? generation : config;
    ft_config_reader model = { { .problems = problems }, ignored, hf->architecture, hf };
    ft_config_reader settings = model;
    bool loaded = load(&model.in, config);
    if (load(&settings.in, source) && loaded) {
        check_end(&model, &settings);
        read_settings(&settings, generation != NULL);
    }
    json_decref(model.in.json);
    json_decref(settings.in.json);
}
