/*
 * chat_template.c - find the chat template and the special tokens in the files of a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/chat_template.h"

#include "runtime/base/json_build.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/read_file.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ft_chat_file_name(ft_chat_file_kind kind)
{
    static const char *const names[FT_CHAT_FILES] = {
        [FT_CHAT_FILE_JINJA] = "chat_template.jinja",
        [FT_CHAT_FILE_CONFIG] = "tokenizer_config.json",
        [FT_CHAT_FILE_PROCESSOR] = "chat_template.json",
        [FT_CHAT_FILE_SPECIAL_TOKENS] = "special_tokens_map.json",
    };
    return names[kind];
}

void ft_chat_template_close(ft_chat_template *chat)
{
    if (chat == NULL)
        return;
    ft_jinja_free(chat->template);
    json_decref(chat->tokens);
    free(chat->name);
    free(chat);
}

const char *ft_chat_template_name(const ft_chat_template *chat)
{
    return chat == NULL ? NULL : chat->name;
}

/* ---- The template ------------------------------------------------------------------------- */

/* Of several templates, the one with the name "default". */
static const json_t *find_default(const json_t *list)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name != NULL && strcmp(name, "default") == 0)
            found = json_object_get(one, "template");
    }
    return found;
}

/* The template of a JSON file, a string; NULL: it has none. */
static ft_status find_template(const ft_json_reader *in, const json_t **out)
{
    static const char key[] = "chat_template";
    const json_t *found = ft_json_get(in, key);
    *out = json_is_array(found) ? find_default(found) : found;
    if (found == NULL || json_is_string(*out))
        return FT_OK;
    return ft_json_fail_member(in, key, "a string, or a list with the template \"default\"");
}

static ft_status parse(ft_chat_template *t, const char *label, ft_chat_file_kind kind,
                       const char *text, size_t bytes, ft_error *err)
{
    char name[600];
    snprintf(name, sizeof name, "%.500s%s", label, ft_chat_file_name(kind));
    t->name = ft_strdup(ft_chat_file_name(kind));
    if (t->name == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", name);
    return ft_jinja_parse(&t->template, name, text, bytes, err);
}

/* ---- Special tokens ----------------------------------------------------------------------- */

/* The special tokens that templates know; each is a string, or an object with its "content". */
static void add_tokens(ft_chat_template *t, const json_t *config)
{
    static const char *const names[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token" };
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        json_t *token = json_object_get(config, names[i]);
        if (json_is_object(token))
            token = json_object_get(token, "content");
        if (json_is_string(token) && json_object_get(t->tokens, names[i]) == NULL)
            ft_json_set(&t->tokens, names[i], json_incref(token));
    }
}

/* ---- All files ---------------------------------------------------------------------------- */

/* Read a JSON file: its special tokens, and its template unless there is one already. */
static ft_status read_json(ft_chat_template *t, const char *label, ft_chat_file_kind kind,
                           const ft_chat_file *file, ft_error *err)
{
    char name[600];
    const json_t *text = NULL;
    ft_json_reader in = { .file = name, .err = err };
    if (file->text == NULL)
        return FT_OK;
    snprintf(name, sizeof name, "%.500s%s", label, ft_chat_file_name(kind));
    FT_TRY(ft_json_load_big_integers(&in, JSON_OBJECT, file->text, file->bytes, FT_JSON_MAX_BYTES));
    ft_status status = FT_OK;
    if (t->template == NULL && kind != FT_CHAT_FILE_SPECIAL_TOKENS)
        status = find_template(&in, &text);
    if (status == FT_OK && text != NULL)
        status = parse(t, label, kind, json_string_value(text), json_string_length(text), err);
    add_tokens(t, in.json);
    json_decref(in.json);
    return status;
}

static ft_status read_files(ft_chat_template *t, const char *label,
                            const ft_chat_file files[FT_CHAT_FILES], ft_error *err)
{
    const ft_chat_file *jinja = &files[FT_CHAT_FILE_JINJA];
    if (jinja->text != NULL)
        FT_TRY(parse(t, label, FT_CHAT_FILE_JINJA, jinja->text, jinja->bytes, err));
    for (ft_chat_file_kind kind = FT_CHAT_FILE_CONFIG; kind < FT_CHAT_FILES; kind++)
        FT_TRY(read_json(t, label, kind, &files[kind], err));
    return t->tokens != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for a chat template");
}

static ft_status new_template(ft_chat_template **out, ft_error *err)
{
    *out = ft_calloc(1, sizeof **out);
    if (*out == NULL || ((*out)->tokens = json_object()) == NULL) {
        ft_chat_template_close(*out);
        *out = NULL;
        return ft_fail(err, FT_ENOMEM, "no memory for a chat template");
    }
    return FT_OK;
}

ft_status ft_chat_template_read(ft_chat_template **out, const char *label,
                                const ft_chat_file files[FT_CHAT_FILES], ft_error *err)
{
    ft_chat_template *t;
    *out = NULL;
    FT_TRY(new_template(&t, err));
    ft_status status = read_files(t, label, files, err);
    if (status != FT_OK || t->template == NULL)
        ft_chat_template_close(t);
    else
        *out = t;
    return status;
}

/* ---- One file ----------------------------------------------------------------------------- */

enum { MAX_TEMPLATE = 1 << 20 };

static ft_status open_file(ft_chat_template *t, const char *path, const char *bos_token,
                           const char *eos_token, ft_error *err)
{
    char *text;
    size_t bytes = 0;
    ft_status status = ft_file_read(&text, &bytes, path, MAX_TEMPLATE, err);
    if (status == FT_OK)
        status = ft_jinja_parse(&t->template, path, text, bytes, err);
    free(text);
    FT_TRY(status);
    if (bos_token != NULL)
        ft_json_set(&t->tokens, "bos_token", json_string(bos_token));
    if (eos_token != NULL)
        ft_json_set(&t->tokens, "eos_token", json_string(eos_token));
    t->name = ft_strdup(path);
    if (t->name == NULL || t->tokens == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory, or a token is not valid UTF-8", path);
    return FT_OK;
}

ft_status ft_chat_template_open(ft_chat_template **out, const char *path, const char *bos_token,
                                const char *eos_token, ft_error *err)
{
    ft_chat_template *t;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(path, err);
    FT_TRY(new_template(&t, err));
    ft_status status = open_file(t, path, bos_token, eos_token, err);
    if (status != FT_OK)
        ft_chat_template_close(t);
    else
        *out = t;
    return status;
}
