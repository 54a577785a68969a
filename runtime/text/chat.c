/*
 * chat.c - conversations as text and as token ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/chat_template.h"

#include "runtime/base/json_build.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/read_options.h"
#include "runtime/base/utf8.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_VARIABLES = 64 };

/* ---- Messages as transformers prepares them ----------------------------------------------- */

/* What the model thought, under any of its names; NULL: nothing. */
static json_t *find_reasoning(const json_t *message)
{
    static const char *const names[] = { "reasoning_content", "thinking", "reasoning" };
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        json_t *found = json_object_get(message, names[i]);
        if (found != NULL && !json_is_null(found))
            return found;
    }
    return NULL;
}

/* A copy without keys whose value is null, and with the reasoning under two names. */
static json_t *prepare_message(const json_t *message)
{
    const char *key;
    json_t *value, *copy = json_object(), *reasoning = find_reasoning(message);
    if (reasoning != NULL)
        ft_json_set(&copy, "thinking", json_incref(reasoning));
    json_object_foreach((json_t *) (uintptr_t) message, key, value) if (!json_is_null(value))
        ft_json_set(&copy, key, json_incref(value));
    if (reasoning != NULL)
        ft_json_set(&copy, "reasoning_content", json_incref(reasoning));
    return copy;
}

static ft_status prepare_messages(const json_t *messages, json_t **out, ft_error *err)
{
    *out = NULL;
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return ft_fail(err, FT_EARG, "found no messages, expected at least one");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!json_is_object(json_array_get(messages, i)))
            return ft_fail(err, FT_EFORMAT, "message %zu: expected an object with role and content",
                           i);
    *out = json_array();
    for (size_t i = 0; i < json_array_size(messages); i++)
        ft_json_append(out, prepare_message(json_array_get(messages, i)));
    return *out != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for a conversation");
}

/* ---- Rendering ---------------------------------------------------------------------------- */

typedef struct {
    ft_jinja_variable list[MAX_VARIABLES];
    size_t count;
} variables;

/* Of two values of a name the first one counts. */
static void add(variables *v, const char *name, const json_t *value, bool message)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, name) == 0)
            return;
    if (v->count < MAX_VARIABLES)
        v->list[v->count++] = (ft_jinja_variable){ name, value, message };
}

/* The variables of apply_chat_template(): those of the caller replace special tokens. */
static variables all_variables(const ft_chat_template *template, const json_t *caller,
                               const json_t *messages, bool generation_prompt)
{
    variables v = { .count = 0 };
    const char *name;
    json_t *value;
    add(&v, "messages", messages, true);
    json_object_foreach((json_t *) (uintptr_t) caller, name, value) add(&v, name, value, true);
    json_object_foreach(template->tokens, name, value) add(&v, name, value, false);
    add(&v, "tools", json_null(), false);
    add(&v, "documents", json_null(), false);
    add(&v, "add_generation_prompt", generation_prompt ? json_true() : json_false(), false);
    return v;
}

ft_status ft_chat_render_json(const ft_chat_template *template, const json_t *messages,
                              const ft_chat_options *options, ft_chat_text *out, ft_error *err)
{
    ft_chat_options known;
    json_t *prepared;
    *out = (ft_chat_text){ 0 };
    FT_TRY(FT_READ_OPTIONS(&known, ft_chat_options, date, options, err));
    const json_t *list =
        json_is_object(messages) ? json_object_get(messages, "messages") : messages;
    FT_TRY(prepare_messages(list, &prepared, err));
    variables v = all_variables(template, messages, prepared, !known.no_generation_prompt);
    int64_t date = known.date != 0 ? known.date : (int64_t) time(NULL);
    ft_status status = ft_jinja_render(template->template, v.list, v.count, date, out, err);
    json_decref(prepared);
    return status;
}

ft_status ft_chat_render_file(const ft_chat_template *template, const char *name, const char *json,
                              size_t bytes, const ft_chat_options *options, ft_chat_text *out,
                              ft_error *err)
{
    json_error_t why;
    *out = (ft_chat_text){ 0 };
    json_t *messages = ft_json_parse(json, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (messages == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: line %d: %s", name, why.line, why.text);
    ft_status status = ft_chat_render_json(template, messages, options, out, err);
    json_decref(messages);
    return status;
}

ft_status ft_chat_template_check(const ft_chat_file files[FT_CHAT_FILES], ft_error *err)
{
    ft_chat_template *template;
    const ft_chat_message hello = { "user", "Hello!" };
    size_t bytes;
    FT_TRY(ft_chat_template_read(&template, "", files, err));
    ft_status status = FT_OK;
    if (template != NULL)
        status = ft_chat_render(template, &hello, 1, NULL, NULL, NULL, 0, &bytes, err);
    ft_chat_template_close(template);
    return status;
}

/* ---- The public functions ----------------------------------------------------------------- */

static ft_status check_message(const ft_chat_message *messages, size_t i, ft_error *err)
{
    const char *content = messages[i].content, *role = messages[i].role;
    if (content == NULL || role == NULL)
        return ft_fail(err, FT_EARG, "message %zu: its %s is NULL", i,
                       content == NULL ? "content" : "role");
    size_t bytes = strlen(content), valid = ft_utf8_valid_prefix(content, bytes);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "message %zu: byte %zu is 0x%02x, expected valid UTF-8", i,
                       valid, (unsigned) (unsigned char) content[valid]);
    if (ft_utf8_valid_prefix(role, strlen(role)) < strlen(role))
        return ft_fail(err, FT_EFORMAT, "message %zu: its role is not valid UTF-8", i);
    return FT_OK;
}

static ft_status to_json(const ft_chat_message *messages, size_t count, json_t **out, ft_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < count; i++)
        FT_TRY(check_message(messages, i, err));
    *out = json_array();
    for (size_t i = 0; i < count; i++)
        ft_json_append(
            out, json_pack("{ss ss}", "role", messages[i].role, "content", messages[i].content));
    return *out != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for a conversation");
}

static ft_status render(const ft_chat_template *template, const ft_chat_message *messages,
                        size_t count, const ft_chat_options *options, ft_chat_text *out,
                        ft_error *err)
{
    json_t *json;
    FT_TRY(to_json(messages, count, &json, err));
    ft_status status = ft_chat_render_json(template, json, options, out, err);
    json_decref(json);
    return status;
}

ft_status ft_chat_render(const ft_chat_template *chat, const ft_chat_message *messages,
                         size_t count, const ft_chat_options *options, char *text,
                         uint8_t *untrusted, size_t capacity, size_t *bytes, ft_error *err)
{
    ft_chat_text out;
    FT_REQUIRE(bytes, err);
    *bytes = 0;
    FT_REQUIRE(chat, err);
    FT_REQUIRE_ARRAY(messages, count, err);
    FT_REQUIRE_ARRAY(text, capacity, err);
    FT_TRY(render(chat, messages, count, options, &out, err));
    size_t fits = ft_min_size(capacity, out.bytes);
    if (fits > 0)
        memcpy(text, out.text, fits);
    if (fits > 0 && untrusted != NULL)
        memcpy(untrusted, out.message, fits);
    *bytes = out.bytes;
    free(out.text);
    return FT_OK;
}

ft_status ft_chat_text_encode(const ft_tokenizer *tokenizer, const ft_chat_text *text,
                              ft_encoding **out, ft_error *err)
{
    const ft_encode_options options = { .size = sizeof options,
                                        .no_special_tokens = true,
                                        .untrusted = text->message };
    return ft_tokenizer_encode_text(tokenizer, text->text, text->bytes, &options, out, err);
}

ft_status ft_chat_encode(const ft_chat_template *chat, const ft_tokenizer *tokenizer,
                         const ft_chat_message *messages, size_t count,
                         const ft_chat_options *options, ft_encoding **out, ft_error *err)
{
    ft_chat_text text;
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(chat, err);
    FT_REQUIRE(tokenizer, err);
    FT_REQUIRE_ARRAY(messages, count, err);
    FT_TRY(render(chat, messages, count, options, &text, err));
    ft_status status = ft_chat_text_encode(tokenizer, &text, out, err);
    free(text.text);
    return status;
}
