/*
 * sentence_text.c - how sentence-transformers prepares texts: their length, lower case, prompts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/sentence_transformers.h"

#include "convert/config/config_reader.h"
#include "runtime/mem.h"
#include "runtime/text/embedding_prompts.h"

#include <stdlib.h>
#include <string.h>

/* An optional file that must contain a JSON object; its `json` is NULL when it is absent. */
static ft_json_reader read_optional_json(const ft_checkpoint *checkpoint, const char *file,
                                         ft_messages *problems)
{
    char *text;
    size_t bytes;
    ft_error err;
    ft_json_reader in = { .file = file, .problems = problems };
    if (!ft_checkpoint_has(checkpoint, file))
        return in;
    if (ft_checkpoint_read(checkpoint, file, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return in;
    }
    (void) ft_json_load(&in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES);
    free(text);
    return in;
}

/* ---- The Transformer's settings -------------------------------------------------------------- */

/* The file of the Transformer's settings; old versions named it after the class of the model. */
static const char *settings_file(const ft_checkpoint *checkpoint)
{
    static const char *const names[] = {
        "sentence_bert_config.json",        "sentence_roberta_config.json",
        "sentence_distilbert_config.json",  "sentence_camembert_config.json",
        "sentence_xlm-roberta_config.json",
    };
    size_t i = 0;
    while (i + 1 < FT_COUNT(names) && !ft_checkpoint_has(checkpoint, names[i]))
        i++;
    return names[i];
}

/* The tokenizer's model_max_length, which may be 10^30 for no limit; 0 where it is absent. */
static double tokenizer_length(const ft_checkpoint *checkpoint)
{
    static const char file[] = "tokenizer_config.json";
    char *text;
    size_t bytes;
    if (!ft_checkpoint_has(checkpoint, file) ||
        ft_checkpoint_read(checkpoint, file, &text, &bytes, NULL) != FT_OK)
        return 0;
    json_t *json = ft_json_parse(text, bytes, JSON_DECODE_INT_AS_REAL, NULL);
    double length = json_number_value(json_object_get(json, "model_max_length"));
    json_decref(json);
    free(text);
    return length;
}

/*
 * The Transformer's max_seq_length, or else the tokenizer's; ignored when it does not shorten the
 * model's positions.
 */
static void read_length(ft_config *config, const ft_json_reader *settings,
                        const ft_checkpoint *checkpoint)
{
    const json_t *own = ft_json_get(settings, "max_seq_length");
    double length = own != NULL ? (double) json_integer_value(own) : tokenizer_length(checkpoint);
    if (own != NULL && length < 1)
        ft_json_fail_member(settings, "max_seq_length", "an integer from 1");
    else if (length >= 1 && length < config->positions - config->position_offset)
        config->max_seq_length = (int32_t) length;
}

/* Which output of the model is pooled: the last hidden state, also where the file says nothing. */
static void check_output(const ft_json_reader *settings)
{
    char found[FT_JSON_SNIPPET_SIZE];
    const json_t *text =
        json_object_get(json_object_get(settings->json, "modality_config"), "text");
    const json_t *output = json_object_get(text, "method_output_name");
    const char *name = json_string_value(output);
    if (output != NULL && (name == NULL || strcmp(name, "last_hidden_state") != 0))
        ft_json_fail(settings, FT_EUNSUPPORTED,
                     "modality_config.text.method_output_name is %s, only \"last_hidden_state\" is "
                     "supported",
                     ft_json_snippet(found, output));
}

/* What the Transformer computes must be the last hidden state of texts. */
static void check_settings(const ft_json_reader *settings)
{
    static const struct {
        const char *key, *must;
    } fixed[] = {
        { "transformer_task", "feature-extraction" },
        { "module_output_name", "token_embeddings" },
    };
    for (size_t i = 0; i < FT_COUNT(fixed); i++) {
        char found[FT_JSON_SNIPPET_SIZE];
        const json_t *value = ft_json_get(settings, fixed[i].key);
        const char *name = json_string_value(value);
        if (value != NULL && (name == NULL || strcmp(name, fixed[i].must) != 0))
            ft_json_fail(settings, FT_EUNSUPPORTED, "%s is %s, only \"%s\" is supported",
                         fixed[i].key, ft_json_snippet(found, value), fixed[i].must);
    }
}

static void read_settings(ft_config *config, ft_sentence_files *out,
                          const ft_checkpoint *checkpoint, ft_messages *problems)
{
    ft_json_reader settings = read_optional_json(checkpoint, settings_file(checkpoint), problems);
    read_length(config, &settings, checkpoint);
    if (settings.json != NULL) {
        (void) ft_json_read_optional_bool(&settings, "do_lower_case", false, &out->lowercase);
        check_settings(&settings);
        check_output(&settings);
    }
    json_decref(settings.json);
}

/* ---- Prompts --------------------------------------------------------------------------------- */

static void read_prompts(ft_sentence_files *out, const ft_checkpoint *checkpoint,
                         ft_messages *problems)
{
    ft_embedding_prompts prompts = { .json = NULL };
    ft_error err;
    char *text;
    size_t bytes;
    if (!ft_checkpoint_has(checkpoint, FT_PROMPTS_FILE))
        return;
    if (ft_checkpoint_read(checkpoint, FT_PROMPTS_FILE, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    if (ft_embedding_prompts_parse(&prompts, FT_PROMPTS_FILE, text, bytes, &err) != FT_OK)
        ft_messages_add_error(problems, &err);
    out->has_prompts = ft_embedding_prompts_count(&prompts) > 0;
    out->uses_prompt = prompts.default_text[0] != '\0';
    ft_embedding_prompts_fini(&prompts);
    free(text);
}

void ft_sentence_text_read(ft_config *config, ft_sentence_files *out,
                           const ft_checkpoint *checkpoint, ft_messages *problems)
{
    read_settings(config, out, checkpoint, problems);
    read_prompts(out, checkpoint, problems);
}
