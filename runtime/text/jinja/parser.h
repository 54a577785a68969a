/*
 * parser.h - what the parts of the parser share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_PARSER_H
#define FT_RUNTIME_TEXT_JINJA_PARSER_H

#include "runtime/text/jinja/lexer.h"
#include "runtime/text/jinja/node.h"

typedef struct ft_jinja_parser ft_jinja_parser;
struct ft_jinja_parser {
    ft_jinja_run *run;
    struct ft_jinja_template *template;
    const ft_jinja_token *token; /* the current one */
    size_t loops, macros;        /* that are open */
    size_t safes;                /* filters `safe` that do something */
    uint32_t safe_line;          /* of the last one */

    /* ft_jinja_parse_expression(), for what is inside of expressions. */
    ft_jinja_node *(*expression)(ft_jinja_parser *p);
};

/* ---- Tokens ------------------------------------------------------------------------------- */

bool ft_jinja_at_operator(const ft_jinja_parser *p, const char *text);
bool ft_jinja_at_name(const ft_jinja_parser *p, const char *name);

/* Skip the operator or the name if it is the current token. */
bool ft_jinja_skip_operator(ft_jinja_parser *p, const char *text);
bool ft_jinja_skip_name(ft_jinja_parser *p, const char *name);

void ft_jinja_expect_operator(ft_jinja_parser *p, const char *text);
void ft_jinja_expect_name(ft_jinja_parser *p, const char *name);
void ft_jinja_expect(ft_jinja_parser *p, ft_jinja_token_kind kind, const char *what);

/* Any name, copied. */
const char *ft_jinja_parse_name(ft_jinja_parser *p);

/* Fail with "found TOKEN, expected WHAT". */
_Noreturn void ft_jinja_fail_expected(ft_jinja_parser *p, const char *what);

/* ---- Nodes -------------------------------------------------------------------------------- */

ft_jinja_node *ft_jinja_node_new(ft_jinja_parser *p, ft_jinja_node_kind kind);
uint32_t ft_jinja_symbol_number(ft_jinja_parser *p, const char *name);

/* A list that grows at its end. */
typedef struct ft_jinja_node_list {
    ft_jinja_node *first, *last;
    size_t count;
} ft_jinja_node_list;

void ft_jinja_node_append(ft_jinja_node_list *list, ft_jinja_node *node);

/* ---- Grammar ------------------------------------------------------------------------------ */

/* An expression, with its `if` and `else`. */
ft_jinja_node *ft_jinja_parse_expression(ft_jinja_parser *p);

/* Without them: what a `for` iterates over. */
ft_jinja_node *ft_jinja_parse_or(ft_jinja_parser *p);

/* A name, a constant, a list and such; a unary sign, attributes and calls behind one; filters. */
ft_jinja_node *ft_jinja_parse_primary(ft_jinja_parser *p);
ft_jinja_node *ft_jinja_parse_unary(ft_jinja_parser *p, bool with_filters);
ft_jinja_node *ft_jinja_parse_postfix(ft_jinja_parser *p, ft_jinja_node *node);

/* One or more filters with | between, applied to `node`; NULL: to the text of a block. */
ft_jinja_node *ft_jinja_parse_filters(ft_jinja_parser *p, ft_jinja_node *node);

/* One expression, or a tuple of several with commas between them. */
ft_jinja_node *ft_jinja_parse_tuple(ft_jinja_parser *p, bool in_parentheses);

/* What `for` and `set` assign to: names, or an attribute of a namespace if allowed. */
ft_jinja_node *ft_jinja_parse_target(ft_jinja_parser *p, bool with_attribute);

/* Statements up to one of the names, NULL: the end of the template; the name is current then. */
const ft_jinja_node *ft_jinja_parse_statements(ft_jinja_parser *p, const char *const *until);

#endif
