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

/* A Dense layer. A Normalize before it is part of it. */
static bool read_dense(ft_modules *out, const json_t *module)
{
    int i = out->num_dense;
    if (i == FT_MAX_DENSE || !copy_subfolder(out->dense[i], sizeof out->dense[i], module))
        return false;
    out->normalize_input[i] = out->normalize;
    out->normalize = false;
    out->num_dense++;
    return true;
}

/* Whether module `index` is supported at that position. */
static bool read_module(ft_modules *out, size_t index, const json_t *module)
{
    const char *class = class_of(module);
    if (class == NULL)
        return false;
    if (index == 0)
        return strcmp(class, "Transformer") == 0 && is_root_module(module);
    if (index == 1)
        return strcmp(class, "Pooling") == 0 &&
               copy_subfolder(out->pooling, sizeof out->pooling, module);
    if (strcmp(class, "Dense") == 0)
        return read_dense(out, module);
    if (strcmp(class, "Normalize") != 0 || out->normalize)
        return false;
    out->normalize = true;
    return true;
}

static void refuse_module(const ft_json_reader *in, size_t index, const json_t *module)
{
    char found[FT_JSON_SNIPPET_SIZE];
    const json_t *type = json_object_get(module, "type");
    ft_json_fail(in, FT_EUNSUPPORTED,
                 "module %zu is %s, expected a Transformer in this folder, then a Pooling in a "
                 "folder below, then at most %d Dense in folders below, each perhaps behind a "
                 "Normalize, and perhaps a Normalize; compute the embedding from the output "
                 "last_hidden_state of a checkpoint without modules.json",
                 index, ft_json_snippet(found, type != NULL ? type : module), FT_MAX_DENSE);
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
        if (!read_module(out, i, module)) {
            refuse_module(&in, i, module);
            out->pooling[0] = '\0';
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

/* Each mode has two names: the value of "pooling_mode", and the key of a boolean. */
static const struct {
    const char *name, *key;
    ft_embedding embedding;
} pooling_modes[] = {
    { "mean", "mean_tokens", FT_EMBEDDING_MEAN },
    { "cls", "cls_token", FT_EMBEDDING_FIRST },
    { "lasttoken", "lasttoken", FT_EMBEDDING_LAST },
    { "max", "max_tokens", FT_EMBEDDING_MAX },
    { "mean_sqrt_len_tokens", "mean_sqrt_len_tokens", FT_EMBEDDING_MEAN_SQRT_LEN },
    { "weightedmean", "weightedmean_tokens", FT_EMBEDDING_WEIGHTED_MEAN },
};

static void set_mode(pooling *p, const char *mode)
{
    p->modes++;
    for (size_t i = 0; i < FT_COUNT(pooling_modes); i++)
        if (strcmp(mode, pooling_modes[i].name) == 0 || strcmp(mode, pooling_modes[i].key) == 0) {
            p->config->embedding = pooling_modes[i].embedding;
            return;
        }
    ft_json_fail(&p->in, FT_EUNSUPPORTED,
                 "pooling mode %s is not supported; supported are mean, cls, lasttoken, max, "
                 "mean_sqrt_len_tokens and weightedmean",
                 mode);
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
    else if (strcmp(key, "include_prompt") == 0 && json_is_false(value))
        ft_json_fail(&p->in, FT_EUNSUPPORTED,
                     "include_prompt is false, but prompts are always pooled with the text; if no "
                     "prompts are used, set it to true");
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
        ft_json_fail(&p.in, FT_EUNSUPPORTED,
                     "%d pooling modes, expected one; the concatenation of several is not "
                     "supported",
                     p.modes);
    json_decref(p.in.json);
}

/* ---- Dense ---------------------------------------------------------------------------------- */

/* The last components of names of classes of torch.nn. */
static const struct {
    const char *class;
    ft_activation activation;
} dense_activations[] = {
    { "Tanh", FT_ACT_TANH }, { "Identity", FT_ACT_NONE }, { "ReLU", FT_ACT_RELU },
    { "GELU", FT_ACT_GELU }, { "SiLU", FT_ACT_SILU },
};

/* Older versions wrote no activation: Tanh. */
static void read_dense_activation(const ft_json_reader *in, ft_dense *dense)
{
    char found[FT_JSON_SNIPPET_SIZE];
    const json_t *value = ft_json_get(in, "activation_function");
    const char *name = value == NULL ? "torch.nn.Tanh" : json_string_value(value);
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    for (size_t i = 0;
         dot != NULL && ft_starts_with(name, "torch.nn.") && i < FT_COUNT(dense_activations); i++)
        if (strcmp(dot + 1, dense_activations[i].class) == 0) {
            dense->activation = dense_activations[i].activation;
            return;
        }
    ft_json_fail(in, FT_EUNSUPPORTED,
                 "activation_function %s is not supported; supported are Tanh, Identity, ReLU, "
                 "GELU and SiLU of torch.nn",
                 ft_json_snippet(found, value));
}

/* Keys whose other values change what the layer reads, adds or writes. */
static void check_dense_keys(const ft_json_reader *in)
{
    static const char *const known[] = { "in_features", "out_features", "bias",
                                         "activation_function" };
    const char *key;
    json_t *value;
    json_object_foreach(in->json, key, value)
    {
        char found[FT_JSON_SNIPPET_SIZE];
        size_t i = 0;
        while (i < FT_COUNT(known) && strcmp(key, known[i]) != 0)
            i++;
        bool is_name =
            strcmp(key, "module_input_name") == 0 || strcmp(key, "module_output_name") == 0;
        const char *name = json_string_value(value);
        if (i == FT_COUNT(known) && !ft_json_is_empty(value) &&
            !(is_name && name != NULL && strcmp(name, "sentence_embedding") == 0))
            ft_json_fail(in, FT_EUNSUPPORTED, "%s is %s, which may change the result", key,
                         ft_json_snippet(found, value));
    }
}

void ft_dense_parse(ft_config *config, const void *text, size_t bytes, const char *label,
                    ft_messages *problems)
{
    ft_json_reader in = { .file = label, .problems = problems };
    ft_dense *dense = &config->dense[config->num_dense];
    int32_t low, high, expected = ft_config_embedding_size(config), input = 0;
    char must[16];
    ft_config_int_bounds(offsetof(ft_config, hidden), &low, &high);
    if (ft_json_load(&in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES) != FT_OK)
        return;
    const json_t *features = json_object_get(in.json, "in_features");
    snprintf(must, sizeof must, "%d", expected);
    if (ft_json_to_int32(&in, "in_features", features, low, high, &input) == FT_OK &&
        input != expected)
        ft_json_fail_value(&in, FT_ESHAPE, "in_features", features, must);
    (void) ft_json_to_int32(&in, "out_features", json_object_get(in.json, "out_features"), low,
                            high, &dense->size);
    (void) ft_json_read_optional_bool(&in, "bias", true, &dense->bias);
    read_dense_activation(&in, dense);
    check_dense_keys(&in);
    config->num_dense++;
    json_decref(in.json);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* Parses the text of a module's file into the configuration. */
typedef void parse_fn(ft_config *config, const void *text, size_t bytes, const char *label,
                      ft_messages *problems);

/* Parse config.json in the folder of a module. */
static void read_module_config(ft_config *config, const ft_checkpoint *checkpoint,
                               const char *folder, parse_fn *parse, ft_messages *problems)
{
    char *text, file[FT_MODULE_FOLDER_SIZE + 16];
    size_t bytes;
    ft_error err;
    snprintf(file, sizeof file, "%s/config.json", folder);
    if (ft_checkpoint_read(checkpoint, file, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    parse(config, text, bytes, file, problems);
    free(text);
}

void ft_sentence_transformers_read(ft_config *config, ft_sentence_files *out,
                                   const ft_checkpoint *checkpoint, ft_messages *problems)
{
    char *text;
    size_t bytes;
    ft_error err;
    ft_modules *modules = &out->modules;
    if (!ft_checkpoint_has(checkpoint, modules_file))
        return;
    ft_sentence_text_read(config, out, checkpoint, problems);
    if (ft_checkpoint_read(checkpoint, modules_file, &text, &bytes, &err) != FT_OK) {
        ft_messages_add_error(problems, &err);
        return;
    }
    ft_modules_parse(modules, text, bytes, problems);
    free(text);
    if (modules->pooling[0] == '\0')
        return;
    config->normalize = modules->normalize;
    read_module_config(config, checkpoint, modules->pooling, ft_pooling_parse, problems);
    for (int i = 0; i < modules->num_dense && problems->count == 0; i++) {
        config->dense[i].normalize_input = modules->normalize_input[i];
        read_module_config(config, checkpoint, modules->dense[i], ft_dense_parse, problems);
    }
}
