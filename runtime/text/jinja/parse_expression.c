/*
 * parse_expression.c - operators, in the order in which jinja2 binds them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/parser.h"

#include "runtime/mem.h"

static ft_jinja_node *binary_node(ft_jinja_parser *p, ft_jinja_node_kind kind,
                                  const ft_jinja_node *a, const ft_jinja_node *b)
{
    ft_jinja_node *node = ft_jinja_node_new(p, kind);
    node->a = a;
    node->b = b;
    return node;
}

/* One of the operators in a list of { text, op }, which ends with an empty text; false: none. */
typedef struct {
    const char *text;
    int op;
} operator_text;

static bool skip_one_of(ft_jinja_parser *p, const operator_text *list, int *op)
{
    for (; list->text != NULL; list++)
        if (ft_jinja_skip_operator(p, list->text)) {
            *op = list->op;
            return true;
        }
    return false;
}

static ft_jinja_node *parse_power(ft_jinja_parser *p)
{
    ft_jinja_node *left = ft_jinja_parse_unary(p, true);
    while (ft_jinja_skip_operator(p, "**")) {
        left = binary_node(p, FT_JINJA_NODE_BINARY, left, ft_jinja_parse_unary(p, true));
        left->op = FT_JINJA_POW;
    }
    return left;
}

/* Operands of `next` with left-associative operators between them. */
static ft_jinja_node *parse_binary(ft_jinja_parser *p, const operator_text *list,
                                   ft_jinja_node *(*next)(ft_jinja_parser *p))
{
    int op;
    ft_jinja_node *left = next(p);
    while (skip_one_of(p, list, &op)) {
        left = binary_node(p, FT_JINJA_NODE_BINARY, left, next(p));
        left->op = (ft_jinja_operator) op;
    }
    return left;
}

static ft_jinja_node *parse_product(ft_jinja_parser *p)
{
    static const operator_text list[] = { { "*", FT_JINJA_MUL },
                                          { "/", FT_JINJA_DIV },
                                          { "//", FT_JINJA_FLOOR_DIV },
                                          { "%", FT_JINJA_MOD },
                                          { NULL, 0 } };
    return parse_binary(p, list, parse_power);
}

static ft_jinja_node *parse_concat(ft_jinja_parser *p)
{
    ft_jinja_node_list parts = { 0 };
    ft_jinja_node *first = parse_product(p);
    if (!ft_jinja_at_operator(p, "~"))
        return first;
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_CONCAT);
    ft_jinja_node_append(&parts, first);
    while (ft_jinja_skip_operator(p, "~"))
        ft_jinja_node_append(&parts, parse_product(p));
    node->list = parts.first;
    return node;
}

static ft_jinja_node *parse_sum(ft_jinja_parser *p)
{
    static const operator_text list[] = { { "+", FT_JINJA_ADD },
                                          { "-", FT_JINJA_SUB },
                                          { NULL, 0 } };
    return parse_binary(p, list, parse_concat);
}

static bool skip_comparison(ft_jinja_parser *p, int *op)
{
    static const operator_text list[] = {
        { "==", FT_JINJA_EQ }, { "!=", FT_JINJA_NE }, { "<", FT_JINJA_LT }, { "<=", FT_JINJA_LE },
        { ">", FT_JINJA_GT },  { ">=", FT_JINJA_GE }, { NULL, 0 }
    };
    const ft_jinja_token *token = p->token;
    if (skip_one_of(p, list, op))
        return true;
    bool negated = ft_jinja_skip_name(p, "not");
    *op = negated ? FT_JINJA_NOT_IN : FT_JINJA_IN;
    if (ft_jinja_skip_name(p, "in"))
        return true;
    p->token = token; /* a `not` that is not followed by `in` */
    p->run->line = token->line;
    return false;
}

static ft_jinja_node *parse_comparison(ft_jinja_parser *p)
{
    int op;
    ft_jinja_node_list operands = { 0 };
    ft_jinja_node *first = parse_sum(p);
    while (skip_comparison(p, &op)) {
        ft_jinja_node *operand = ft_jinja_node_new(p, FT_JINJA_NODE_OPERAND);
        operand->comparison = (ft_jinja_comparison) op;
        operand->a = parse_sum(p);
        ft_jinja_node_append(&operands, operand);
    }
    if (operands.first == NULL)
        return first;
    ft_jinja_node *node = binary_node(p, FT_JINJA_NODE_COMPARE, first, NULL);
    node->list = operands.first;
    return node;
}

static ft_jinja_node *parse_not(ft_jinja_parser *p)
{
    if (!ft_jinja_skip_name(p, "not"))
        return parse_comparison(p);
    ft_jinja_enter(p->run);
    ft_jinja_node *node = binary_node(p, FT_JINJA_NODE_NOT, parse_not(p), NULL);
    ft_jinja_leave(p->run);
    return node;
}

static ft_jinja_node *parse_and(ft_jinja_parser *p)
{
    ft_jinja_node *left = parse_not(p);
    while (ft_jinja_skip_name(p, "and"))
        left = binary_node(p, FT_JINJA_NODE_AND, left, parse_not(p));
    return left;
}

ft_jinja_node *ft_jinja_parse_or(ft_jinja_parser *p)
{
    ft_jinja_node *left = parse_and(p);
    while (ft_jinja_skip_name(p, "or"))
        left = binary_node(p, FT_JINJA_NODE_OR, left, parse_and(p));
    return left;
}

ft_jinja_node *ft_jinja_parse_expression(ft_jinja_parser *p)
{
    ft_jinja_enter(p->run);
    ft_jinja_node *value = ft_jinja_parse_or(p);
    while (ft_jinja_skip_name(p, "if")) {
        ft_jinja_node *condition = ft_jinja_parse_or(p);
        ft_jinja_node *node = binary_node(p, FT_JINJA_NODE_IF_ELSE, value, condition);
        if (ft_jinja_skip_name(p, "else"))
            node->c = ft_jinja_parse_expression(p);
        value = node;
    }
    ft_jinja_leave(p->run);
    return value;
}
