/*
 * lexer.h - a template as a list of tokens: text, tags, and what is inside tags.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_LEXER_H
#define FT_RUNTIME_TEXT_JINJA_LEXER_H

#include "runtime/text/jinja/values/value.h"

typedef enum ft_jinja_token_kind {
    FT_JINJA_TOKEN_END,   /* of the template */
    FT_JINJA_TOKEN_DATA,  /* text outside tags, white space control done */
    FT_JINJA_TOKEN_OPEN,  /* {{ */
    FT_JINJA_TOKEN_BLOCK, /* {% */
    FT_JINJA_TOKEN_CLOSE, /* }} or %} */
    FT_JINJA_TOKEN_NAME,
    FT_JINJA_TOKEN_OPERATOR, /* also brackets, commas and such */
    FT_JINJA_TOKEN_STRING,   /* escapes decoded */
    FT_JINJA_TOKEN_NUMBER,   /* in `value` */
} ft_jinja_token_kind;

typedef struct ft_jinja_token {
    ft_jinja_token_kind kind;
    uint32_t line;
    const char *text; /* [bytes] */
    size_t bytes;
    ft_jinja_value value;
} ft_jinja_token;

typedef struct ft_jinja_token_list {
    ft_jinja_token *token; /* the last one is FT_JINJA_TOKEN_END */
    size_t count, capacity;
} ft_jinja_token_list;

void ft_jinja_add_token(ft_jinja_run *run, ft_jinja_token_list *list, ft_jinja_token token);

/* The tokens of a template of valid UTF-8. */
ft_jinja_token_list ft_jinja_lex(ft_jinja_run *run, const char *text, size_t bytes);

/*
 * Add the tokens of an expression up to `close`, "}}" or "%}".  Returns the bytes that they take,
 * and the close tag not.
 */
size_t ft_jinja_lex_expression(ft_jinja_run *run, const char *text, size_t bytes, const char *close,
                               ft_jinja_token_list *tokens);

#endif
