/*
 * parser_tokens.c - tokens and nodes for the parser.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/parser.h"

#include "runtime/mem.h"

#include <string.h>

/* ---- Tokens ------------------------------------------------------------------------------- */

static bool is_token(const ft_jinja_token *token, ft_jinja_token_kind kind, const char *text)
{
    return token->kind == kind && token->bytes == strlen(text) &&
           memcmp(token->text, text, token->bytes) == 0;
}

bool ft_jinja_at_operator(const ft_jinja_parser *p, const char *text)
{
    return is_token(p->token, FT_JINJA_TOKEN_OPERATOR, text);
}

bool ft_jinja_at_name(const ft_jinja_parser *p, const char *name)
{
    return is_token(p->token, FT_JINJA_TOKEN_NAME, name);
}

/* The line of the current token goes into messages and nodes. */
static void next_token(ft_jinja_parser *p)
{
    p->token++;
    p->run->line = p->token->line;
}

bool ft_jinja_skip_operator(ft_jinja_parser *p, const char *text)
{
    bool is = ft_jinja_at_operator(p, text);
    if (is)
        next_token(p);
    return is;
}

bool ft_jinja_skip_name(ft_jinja_parser *p, const char *name)
{
    bool is = ft_jinja_at_name(p, name);
    if (is)
        next_token(p);
    return is;
}

void ft_jinja_fail_expected(ft_jinja_parser *p, const char *what)
{
    static const char *const names[] = {
        [FT_JINJA_TOKEN_END] = "the end of the template",
        [FT_JINJA_TOKEN_DATA] = "text",
        [FT_JINJA_TOKEN_OPEN] = "{{",
        [FT_JINJA_TOKEN_BLOCK] = "{%",
        [FT_JINJA_TOKEN_CLOSE] = "the end of the tag",
        [FT_JINJA_TOKEN_STRING] = "a string",
    };
    const ft_jinja_token *t = p->token;
    if (t->kind < FT_COUNT(names) && names[t->kind] != NULL)
        ft_jinja_fail(p->run, FT_EFORMAT, "found %s, expected %s", names[t->kind], what);
    ft_jinja_fail(p->run, FT_EFORMAT, "found \"%.*s\", expected %s",
                  (int) ft_min_size(t->bytes, 80), t->text, what);
}

void ft_jinja_expect_operator(ft_jinja_parser *p, const char *text)
{
    if (!ft_jinja_skip_operator(p, text))
        ft_jinja_fail_expected(p, text);
}

void ft_jinja_expect_name(ft_jinja_parser *p, const char *name)
{
    if (!ft_jinja_skip_name(p, name))
        ft_jinja_fail_expected(p, name);
}

void ft_jinja_expect(ft_jinja_parser *p, ft_jinja_token_kind kind, const char *what)
{
    if (p->token->kind != kind)
        ft_jinja_fail_expected(p, what);
    if (kind != FT_JINJA_TOKEN_END)
        next_token(p);
}

const char *ft_jinja_parse_name(ft_jinja_parser *p)
{
    const ft_jinja_token *token = p->token;
    ft_jinja_expect(p, FT_JINJA_TOKEN_NAME, "a name");
    return ft_jinja_copy(p->run, token->text, token->bytes);
}

/* ---- Nodes -------------------------------------------------------------------------------- */

ft_jinja_node *ft_jinja_node_new(ft_jinja_parser *p, ft_jinja_node_kind kind)
{
    ft_jinja_node *node = FT_JINJA_NEW(p->run, ft_jinja_node);
    *node = (ft_jinja_node){ .kind = kind, .line = p->token->line };
    return node;
}

void ft_jinja_node_append(ft_jinja_node_list *list, ft_jinja_node *node)
{
    if (list->first == NULL)
        list->first = node;
    else
        list->last->next = node;
    list->last = node;
    list->count++;
}

uint32_t ft_jinja_symbol_number(ft_jinja_parser *p, const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char) *at) * 16777619u;
    ft_jinja_symbol **bucket = &p->template->bucket[hash % FT_JINJA_SYMBOL_BUCKETS];
    for (ft_jinja_symbol *symbol = *bucket; symbol != NULL; symbol = symbol->next)
        if (strcmp(symbol->name, name) == 0)
            return symbol->number;
    ft_jinja_symbol *added = FT_JINJA_NEW(p->run, ft_jinja_symbol);
    *added = (ft_jinja_symbol){ name, *bucket, p->template->symbols++ };
    *bucket = added;
    return added->number;
}
