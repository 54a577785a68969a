/*
 * sentence_transformers.c - read modules.json and the files that it names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/sentence_transformers.h"

#include "convert/config/config_reader.h"
#include "runtime/base/affix.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

static const char modules_file[] = "modules.json";

/* ---- Modules -------------------------------------------------------------------------------- */

/* "Pooling" of "sentence_transformers.models.Pooling"; NULL for third-party modules. */
static const char *class_of(const json_t *module)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    if (type == NULL || strncmp(type, "sentence_transformers.", 22) != 0)
        return NULL;
    return strrchr(type, '.') + 1;
}

/* A direct subfolder of the checkpoint; paths that could leave it are rejected. */
static bool copy_subfolder(char *out, size_t size, const json_t *module)
{
    const char *path = json_string_value(json_object_get(module, "path"));
    if (path == NULL || path[0] == '\0' || path[0] == '.' || strchr(path, '/') != NULL ||
        strlen(path) >= size)
        return false;
    strcpy(out, path);
    return true;
}

static bool is_root_module(const json_t *module)
{
    const char *path = json_string_value(json_object_get(module, "path"));
    return path != NULL && path[0] == '\0';
}

/* Whether module `index` is supported at that position. */
static bool read_module(ft_modules *out, size_t index, const json_t *module)
{
    static const char *const expected[] = { "Transformer", "Pooling", "Normalize" };
    const char *class = class_of(module);
    if (class == NULL || index >= FT_COUNT(expected) || strcmp(class, expected[index]) != 0)
        return false;
    if (index == 0)
        return is_root_module(module);
    if (index == 1)
        return copy_subfolder(out->pooling, sizeof out->pooling, module);
    out->normalize = true;
    return true;
}

void ft_modules_parse(ft_modules *out, const void *text, size_t bytes, ft_messages *problems)
{
    memset(out, 0, sizeof *out);
    ft_json_reader in = { .file = modules_file, .problems = problems };
    if (ft_json_load(&in, JSON_ARRAY, text, bytes, FT_JSON_MAX_BYTES) != FT_OK)
        return;
    size_t i;
    json_t *module;
    json_array_foreach(in.json, i, module)
    {
        char found[FT_JSON_SNIPPET_SIZE];
        if (!read_module(out, i, module)) {
            const json_t *type = json_object_get(module, "type");
            ft_json_fail(&in, FT_EUNSUPPORTED,
                         "module %zu is %s, expected a Transformer in this folder, then a "
                         "Pooling in a folder below, and perhaps a Normalize",
                         i, ft_json_snippet(found, type != NULL ? type : module));
            break;
        }
    }
    if (i == json_array_size(in.json) && out->pooling[0] == '\0')
        ft_json_fail(&in, FT_EUNSUPPORTED, "no Pooling, so there is no embedding");
    json_decref(in.json);
}

/* ---- Pooling -------------------------------------------------------------------------------- */

typedef struct {
    ft_json_reader in;
    ft_config *config;
    int modes;
} pooling;

static void set_mode(pooling *p, const char *mode)
{
    p->modes++;
    if (strcmp(mode, "mean") == 0 || strcmp(mode, "mean_tokens") == 0)
        p->config->embedding = FT_EMBEDDING_MEAN;
    else if (strcmp(mode, "cls") == 0 || strcmp(mode, "cls_token") == 0)
        p->config->embedding = FT_EMBEDDING_FIRST;
    else
        ft_json_fail(&p->in, FT_EUNSUPPORTED,
                     "pooling mode %s is not supported; supported are mean and cls", mode);
}

static void check_dimension(const pooling *p, const json_t *value)
{
    char expected[16];
    snprintf(expected, sizeof expected, "%d", p->config->hidden);
    if (!json_is_integer(value) || json_integer_value(value) != p->config->hidden)
        ft_json_fail_value(&p->in, FT_ESHAPE, "word_embedding_dimension", value, expected);
}

/* Either "pooling_mode": "mean", or one boolean "pooling_mode_mean_tokens" etc. per mode. */
static void read_key(pooling *p, const char *key, const json_t *value)
{
    static const char prefix[] = "pooling_mode_";
    char found[FT_JSON_SNIPPET_SIZE];
    if (strcmp(key, "pooling_mode") == 0 && json_is_string(value))
        set_mode(p, json_string_value(value));
    else if (ft_starts_with(key, prefix) && json_is_true(value))
        set_mode(p, key + strlen(prefix));
    else if (strcmp(key, "word_embedding_dimension") == 0 ||
             strcmp(key, "embedding_dimension") == 0)
        check_dimension(p, value);
    else if (strcmp(key, "include_prompt") == 0 ? !json_is_true(value) : !ft_json_is_empty(value))
        ft_json_fail(&p->in, FT_EUNSUPPORTED, "%s is %s, which may change the result", key,
                     ft_json_snippet(found, value));
}

void ft_pooling_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                      ft_messages *problems)
{
    pooling p = { { .file = label, .problems = problems }, config, 0 };
    const char *key;
    json_t *value;
    if (ft_json_load(&p.in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES) != FT_OK)
        return;
    json_object_foreach(p.in.json, key, value) read_key(&p, key, value);
    if (p.modes != 1)
        ft_json_fail(&p.in, FT_EUNSUPPORTED, "%d pooling modes, expected one", p.modes);
    json_decref(p.in.json);
}

/* ---- Text preprocessing --------------------------------------------------------------------- */

/* An optional file that must contain a JSON object; its `json` is NULL when it is absent. */
static ft_json_reader read_optional_json(ft_checkpoint *checkpoint, const char *file,
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
static double tokenizer_length(ft_checkpoint *checkpoint)
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
static void read_length(ft_config *config, ft_checkpoint *checkpoint, ft_messages *problems)
{
    ft_json_reader settings = read_optional_json(checkpoint, settings_file(checkpoint), problems);
    const json_t *own = ft_json_get(&settings, "max_seq_length");
    double length = own != NULL ? (double) json_integer_value(own) : tokenizer_length(checkpoint);
    if (own != NULL && length < 1)
        ft_json_fail_member(&settings, "max_seq_length", "an integer from 1");
    else if (length >= 1 && length < config->positions - config->position_offset)
        config->max_seq_length = (int32_t) length;
    json_decref(settings.json);
}

/* Keys of two of these files that change texts or tokens, unless their value is empty. */
static const struct {
    const char *file, *key, *effect; /* NULL file: settings_file() */
} preprocessing_keys[] = {
    { NULL, "do_lower_case", "lowercases texts first" },
    { "config_sentence_transformers.json", "default_prompt_name", "prepends this prompt to texts" },
};

static void note_preprocessing(ft_checkpoint *checkpoint, ft_messages *notes, ft_messages *problems)
{
    for (size_t i = 0; i < FT_COUNT(preprocessing_keys); i++) {
        char found[FT_JSON_SNIPPET_SIZE];
        const char *file = preprocessing_keys[i].file != NULL ? preprocessing_keys[i].file
                                                              : settings_file(checkpoint);
        ft_json_reader in = read_optional_json(checkpoint, file, problems);
        const json_t *value = json_object_get(in.json, preprocessing_keys[i].key);
        if (value != NULL && !ft_json_is_empty(value))
            ft_messages_add(
                notes, FT_OK,
                "%s: %s is %s: sentence-transformers %s, the artifact takes tokens as they "
                "are",
                file, preprocessing_keys[i].key, ft_json_snippet(found, value),
                preprocessing_keys[i].effect);
        json_decref(in.json);
    }
}

/* ---- Reading -------------------------------------------------------------------------------- */

void ft_sentence_transformers_read(ft_config *config, ft_checkpoint *checkpoint, ft_messages *notes,
                                   ft_messages *problems)
{
    char *text, file[160];
    size_t bytes;
    ft_error err;
    ft_modules modules;
    if (!ft_checkpoint_has(checkpoint, modules_file))
        return;
    note_preprocessing(checkpoint, notes, problems);
    read_length(config, checkpoint, problems);
    if (ft_checkpoint_read(checkpoint, modules_file, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    ft_modules_parse(&modules, text, bytes, problems);
    free(text);
    if (modules.pooling[0] == '\0')
        return;

    config->normalize = modules.normalize;
    snprintf(file, sizeof file, "%s/config.json", modules.pooling);
    if (ft_checkpoint_read(checkpoint, file, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    ft_pooling_parse(config, text, bytes, file, problems);
    free(text);
}
