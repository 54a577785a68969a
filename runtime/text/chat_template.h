/*
 * chat_template.h - a model's chat template with its special tokens, from the files of a
 * checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_CHAT_TEMPLATE_H
#define FT_RUNTIME_TEXT_CHAT_TEMPLATE_H

#include "runtime/text/jinja/jinja.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Immutable after opening. */
struct ft_chat_template {
    ft_jinja_template *template;
    char *name;     /* where it was found: "chat_template.jinja" */
    json_t *tokens; /* "bos_token", ... -> text */
};

/* The text of a file; NULL: the checkpoint has no such file. */
typedef struct ft_chat_file {
    const char *text; /* [bytes] */
    size_t bytes;
} ft_chat_file;

/* The files of a checkpoint that describe its chats. */
typedef enum ft_chat_file_kind {
    FT_CHAT_FILE_JINJA,          /* chat_template.jinja */
    FT_CHAT_FILE_CONFIG,         /* tokenizer_config.json */
    FT_CHAT_FILE_PROCESSOR,      /* chat_template.json */
    FT_CHAT_FILE_SPECIAL_TOKENS, /* special_tokens_map.json */
    FT_CHAT_FILES
} ft_chat_file_kind;

const char *ft_chat_file_name(ft_chat_file_kind kind);

/*
 * Read the template of the first of these that has one, and the special tokens. Without any
 * template *out is NULL, and FT_OK. `label` begins messages: "model.ft: ". Errors as of
 * ft_jinja_parse(), and FT_EFORMAT for JSON of another form.
 */
FT_MUST_USE ft_status ft_chat_template_read(ft_chat_template **out, const char *label,
                                            const ft_chat_file files[FT_CHAT_FILES], ft_error *err);

/*
 * The same, and render a message of a user: whether chats will work. FT_OK, too, without a
 * template.
 */
FT_MUST_USE ft_status ft_chat_template_check(const ft_chat_file files[FT_CHAT_FILES],
                                             ft_error *err);

/* A rendered conversation. */
typedef ft_jinja_output ft_chat_text;

/*
 * Render messages in JSON, an array, as transformers' apply_chat_template() does: keys whose value
 * is null are dropped from a message, and its reasoning has the names of all templates. An object
 * has the array in "messages", and other variables of the template beside it, such as "tools". On
 * success free(out->text).
 */
FT_MUST_USE ft_status ft_chat_render_json(const ft_chat_template *template, const json_t *messages,
                                          const ft_chat_options *options, ft_chat_text *out,
                                          ft_error *err);

/* The same for the text of a JSON file called `name`. */
FT_MUST_USE ft_status ft_chat_render_file(const ft_chat_template *template, const char *name,
                                          const char *json, size_t bytes,
                                          const ft_chat_options *options, ft_chat_text *out,
                                          ft_error *err);

/* Encode a rendered conversation; special tokens are matched outside of messages alone. */
FT_MUST_USE ft_status ft_chat_text_encode(const ft_tokenizer *tokenizer, const ft_chat_text *text,
                                          ft_encoding **out, ft_error *err);

#pragma GCC visibility pop

#endif
