/*
 * parse_primary.c - names, constants, lists, attributes, calls, filters and tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/parser.h"

#include "runtime/mem.h"

#include <string.h>

/* ---- Constants and names ------------------------------------------------------------------ */

static ft_jinja_node *constant_node(ft_jinja_parser *p, ft_jinja_value value)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_CONSTANT);
    node->value = value;
    return node;
}

static ft_jinja_node *name_node(ft_jinja_parser *p, const char *name)
{
    bool hidden = strcmp(name, "varargs") == 0 || strcmp(name, "kwargs") == 0;
    if (hidden && p->macros > 0)
        ft_jinja_fail_unknown(p->run, "name", name, strlen(name));
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_NAME);
    node->name = name;
    node->symbol = ft_jinja_symbol_number(p, name);
    node->builtin = ft_jinja_find_function(name);
    return node;
}

static ft_jinja_node *parse_name_or_constant(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_CONSTANT);
    node->value = FT_JINJA_NONE_VALUE;
    if (ft_jinja_skip_name(p, "none") || ft_jinja_skip_name(p, "None"))
        return node;
    node->value = ft_jinja_bool(true);
    if (ft_jinja_skip_name(p, "true") || ft_jinja_skip_name(p, "True"))
        return node;
    node->value = ft_jinja_bool(false);
    if (ft_jinja_skip_name(p, "false") || ft_jinja_skip_name(p, "False"))
        return node;
    return name_node(p, ft_jinja_parse_name(p));
}

/* Strings side by side are one. */
static ft_jinja_node *parse_string(ft_jinja_parser *p)
{
    ft_jinja_builder text = { .run = p->run };
    while (p->token->kind == FT_JINJA_TOKEN_STRING) {
        ft_jinja_put(&text, p->token->text, p->token->bytes, false);
        ft_jinja_expect(p, FT_JINJA_TOKEN_STRING, "a string");
    }
    return constant_node(p, ft_jinja_text(ft_jinja_built(&text)));
}

/* ---- Lists, dicts, tuples ----------------------------------------------------------------- */

static ft_jinja_node *parse_list(ft_jinja_parser *p)
{
    ft_jinja_node_list elements = { 0 };
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_LIST);
    ft_jinja_expect_operator(p, "[");
    while (!ft_jinja_skip_operator(p, "]")) {
        if (elements.count > 0)
            ft_jinja_expect_operator(p, ",");
        if (ft_jinja_skip_operator(p, "]"))
            break;
        ft_jinja_node_append(&elements, p->expression(p));
    }
    node->list = elements.first;
    return node;
}

static ft_jinja_node *parse_dict(ft_jinja_parser *p)
{
    ft_jinja_node_list pairs = { 0 };
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_DICT);
    ft_jinja_expect_operator(p, "{");
    while (!ft_jinja_skip_operator(p, "}")) {
        if (pairs.count > 0)
            ft_jinja_expect_operator(p, ",");
        if (ft_jinja_skip_operator(p, "}"))
            break;
        ft_jinja_node *pair = ft_jinja_node_new(p, FT_JINJA_NODE_PAIR);
        pair->a = p->expression(p);
        ft_jinja_expect_operator(p, ":");
        pair->b = p->expression(p);
        ft_jinja_node_append(&pairs, pair);
    }
    node->list = pairs.first;
    return node;
}

ft_jinja_node *ft_jinja_parse_tuple(ft_jinja_parser *p, bool in_parentheses)
{
    ft_jinja_node_list elements = { 0 };
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_TUPLE);
    bool comma = false;
    while (p->token->kind != FT_JINJA_TOKEN_CLOSE && !ft_jinja_at_operator(p, ")")) {
        if (elements.count > 0 && !comma)
            break;
        ft_jinja_node_append(&elements, p->expression(p));
        comma = ft_jinja_skip_operator(p, ",");
    }
    if (elements.count == 0 && !in_parentheses)
        ft_jinja_fail_expected(p, "an expression");
    if (elements.count == 1 && !comma)
        return elements.first;
    node->list = elements.first;
    return node;
}

ft_jinja_node *ft_jinja_parse_primary(ft_jinja_parser *p)
{
    ft_jinja_node *node = NULL;
    if (p->token->kind == FT_JINJA_TOKEN_NAME)
        return parse_name_or_constant(p);
    if (p->token->kind == FT_JINJA_TOKEN_STRING)
        return parse_string(p);
    if (p->token->kind == FT_JINJA_TOKEN_NUMBER) {
        node = constant_node(p, p->token->value);
        ft_jinja_expect(p, FT_JINJA_TOKEN_NUMBER, "a number");
        return node;
    }
    ft_jinja_enter(p->run);
    if (ft_jinja_at_operator(p, "["))
        node = parse_list(p);
    else if (ft_jinja_at_operator(p, "{"))
        node = parse_dict(p);
    else if (ft_jinja_skip_operator(p, "(")) {
        node = ft_jinja_parse_tuple(p, true);
        ft_jinja_expect_operator(p, ")");
    } else
        ft_jinja_fail_expected(p, "an expression");
    ft_jinja_leave(p->run);
    return node;
}

/* ---- Calls -------------------------------------------------------------------------------- */

static ft_jinja_node *parse_argument(ft_jinja_parser *p, bool *has_keywords)
{
    const ft_jinja_token *next = p->token + 1;
    bool keyword = p->token->kind == FT_JINJA_TOKEN_NAME && next->kind == FT_JINJA_TOKEN_OPERATOR &&
                   next->bytes == 1 && next->text[0] == '=';
    if (ft_jinja_at_operator(p, "*") || ft_jinja_at_operator(p, "**"))
        ft_jinja_fail_unknown(p->run, "argument", p->token->text, p->token->bytes);
    if (*has_keywords && !keyword)
        ft_jinja_fail_expected(p, "a keyword argument behind another");
    if (!keyword)
        return p->expression(p);
    *has_keywords = true;
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_KEYWORD);
    node->name = ft_jinja_parse_name(p);
    ft_jinja_expect_operator(p, "=");
    node->a = p->expression(p);
    return node;
}

/* Arguments in parentheses. */
static const ft_jinja_node *parse_arguments(ft_jinja_parser *p)
{
    ft_jinja_node_list arguments = { 0 };
    bool has_keywords = false;
    ft_jinja_expect_operator(p, "(");
    while (!ft_jinja_skip_operator(p, ")")) {
        if (arguments.count > 0)
            ft_jinja_expect_operator(p, ",");
        if (ft_jinja_skip_operator(p, ")"))
            break;
        ft_jinja_node_append(&arguments, parse_argument(p, &has_keywords));
    }
    return arguments.first;
}

/* A method that exists nowhere is refused here. */
static void check_callee(ft_jinja_parser *p, const ft_jinja_node *callee)
{
    if (callee->kind != FT_JINJA_NODE_ATTRIBUTE)
        return;
    const ft_jinja_builtin *found = ft_jinja_find_method(FT_JINJA_MISSING, callee->name);
    if (found == NULL || found->function == NULL)
        ft_jinja_fail_unknown(p->run, "method", callee->name, strlen(callee->name));
}

static ft_jinja_node *parse_call(ft_jinja_parser *p, const ft_jinja_node *callee)
{
    check_callee(p, callee);
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_CALL);
    node->a = callee;
    node->list = parse_arguments(p);
    return node;
}

/* ---- Subscripts --------------------------------------------------------------------------- */

static const ft_jinja_node *parse_bound(ft_jinja_parser *p)
{
    bool none = ft_jinja_at_operator(p, ":") || ft_jinja_at_operator(p, "]") ||
                ft_jinja_at_operator(p, ",");
    return none ? NULL : p->expression(p);
}

/* What is in brackets: an index or a slice. */
static const ft_jinja_node *parse_subscript(ft_jinja_parser *p)
{
    const ft_jinja_node *start = parse_bound(p);
    if (!ft_jinja_at_operator(p, ":")) {
        if (start == NULL)
            ft_jinja_fail_expected(p, "an index");
        return start;
    }
    ft_jinja_node *slice = ft_jinja_node_new(p, FT_JINJA_NODE_SLICE);
    ft_jinja_expect_operator(p, ":");
    slice->a = start;
    slice->b = parse_bound(p);
    if (ft_jinja_skip_operator(p, ":"))
        slice->c = parse_bound(p);
    return slice;
}

static ft_jinja_node *parse_item(ft_jinja_parser *p, const ft_jinja_node *of)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_ITEM);
    ft_jinja_expect_operator(p, "[");
    node->a = of;
    node->b = parse_subscript(p);
    if (ft_jinja_at_operator(p, ","))
        ft_jinja_fail_unknown(p->run, "index", "a, b", 4);
    ft_jinja_expect_operator(p, "]");
    return node;
}

/* value.name or value.0 */
static ft_jinja_node *parse_attribute(ft_jinja_parser *p, const ft_jinja_node *of)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_ATTRIBUTE);
    ft_jinja_expect_operator(p, ".");
    node->a = of;
    if (p->token->kind != FT_JINJA_TOKEN_NUMBER) {
        node->name = ft_jinja_parse_name(p);
        return node;
    }
    node->kind = FT_JINJA_NODE_ITEM;
    node->b = ft_jinja_parse_primary(p);
    return node;
}

ft_jinja_node *ft_jinja_parse_postfix(ft_jinja_parser *p, ft_jinja_node *node)
{
    for (;;) {
        if (ft_jinja_at_operator(p, "."))
            node = parse_attribute(p, node);
        else if (ft_jinja_at_operator(p, "["))
            node = parse_item(p, node);
        else if (ft_jinja_at_operator(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- Filters and tests -------------------------------------------------------------------- */

/* The name of a filter or a test, which may have dots. */
static const char *parse_dotted_name(ft_jinja_parser *p)
{
    const char *name = ft_jinja_parse_name(p);
    if (ft_jinja_at_operator(p, "."))
        ft_jinja_fail_unknown(p->run, "name with dots", name, strlen(name));
    return name;
}

/* map("NAME"), select("NAME") and such find their names here, if they are constants. */
static void check_named_argument(ft_jinja_parser *p, const char *filter,
                                 const ft_jinja_node *arguments)
{
    bool by_attribute = strcmp(filter, "selectattr") == 0 || strcmp(filter, "rejectattr") == 0,
         by_test = by_attribute || strcmp(filter, "select") == 0 || strcmp(filter, "reject") == 0;
    const ft_jinja_node *name = by_attribute && arguments != NULL ? arguments->next : arguments;
    bool named = (by_test || strcmp(filter, "map") == 0) && name != NULL &&
                 name->kind == FT_JINJA_NODE_CONSTANT && name->value.kind == FT_JINJA_STRING;
    if (!named)
        return;
    const ft_jinja_string *text = name->value.string;
    if ((by_test ? ft_jinja_find_test : ft_jinja_find_filter)(text->data, text->bytes) == NULL)
        ft_jinja_fail_unknown(p->run, by_test ? "test" : "filter", text->data, text->bytes);
}

/*
 * The filter `safe` does nothing at the end of an output, where the parser of statements removes
 * it; elsewhere it would escape the strings that it is joined with.
 */
static const ft_jinja_builtin *find_filter(ft_jinja_parser *p, const char *name)
{
    const ft_jinja_builtin *found = ft_jinja_find_filter(name, strlen(name));
    bool safe = strcmp(name, "safe") == 0;
    if (found == NULL && !safe)
        ft_jinja_fail_unknown(p->run, "filter", name, strlen(name));
    if (safe)
        p->safe_line = p->token->line;
    p->safes += safe;
    return found;
}

static ft_jinja_node *parse_filter(ft_jinja_parser *p, const ft_jinja_node *of)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_FILTER);
    node->a = of;
    node->name = parse_dotted_name(p);
    node->builtin = find_filter(p, node->name);
    if (ft_jinja_at_operator(p, "("))
        node->list = parse_arguments(p);
    check_named_argument(p, node->name, node->list);
    return node;
}

ft_jinja_node *ft_jinja_parse_filters(ft_jinja_parser *p, ft_jinja_node *node)
{
    do
        node = parse_filter(p, node);
    while (ft_jinja_skip_operator(p, "|"));
    return node;
}

/* Whether the argument of a test follows without parentheses: "x is divisibleby 3". */
static bool has_bare_argument(const ft_jinja_parser *p)
{
    bool value = p->token->kind == FT_JINJA_TOKEN_NAME || p->token->kind == FT_JINJA_TOKEN_STRING ||
                 p->token->kind == FT_JINJA_TOKEN_NUMBER || ft_jinja_at_operator(p, "[") ||
                 ft_jinja_at_operator(p, "{");
    return value && !ft_jinja_at_name(p, "else") && !ft_jinja_at_name(p, "or") &&
           !ft_jinja_at_name(p, "and");
}

static ft_jinja_node *parse_test(ft_jinja_parser *p, const ft_jinja_node *of)
{
    ft_jinja_expect_name(p, "is");
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_TEST);
    bool negated = ft_jinja_skip_name(p, "not");
    node->a = of;
    node->name = parse_dotted_name(p);
    node->builtin = ft_jinja_find_test(node->name, strlen(node->name));
    if (node->builtin == NULL)
        ft_jinja_fail_unknown(p->run, "test", node->name, strlen(node->name));
    if (ft_jinja_at_operator(p, "("))
        node->list = parse_arguments(p);
    else if (ft_jinja_at_name(p, "is"))
        ft_jinja_fail_expected(p, "one test, because tests cannot be chained");
    else if (has_bare_argument(p))
        node->list = ft_jinja_parse_postfix(p, ft_jinja_parse_primary(p));
    if (!negated)
        return node;
    ft_jinja_node *opposite = ft_jinja_node_new(p, FT_JINJA_NODE_NOT);
    opposite->a = node;
    return opposite;
}

static ft_jinja_node *parse_filters_and_tests(ft_jinja_parser *p, ft_jinja_node *node)
{
    for (;;) {
        if (ft_jinja_skip_operator(p, "|"))
            node = parse_filter(p, node);
        else if (ft_jinja_at_name(p, "is"))
            node = parse_test(p, node);
        else if (ft_jinja_at_operator(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

ft_jinja_node *ft_jinja_parse_unary(ft_jinja_parser *p, bool with_filters)
{
    ft_jinja_node *node;
    bool minus = ft_jinja_at_operator(p, "-");
    if (minus || ft_jinja_at_operator(p, "+")) {
        node = ft_jinja_node_new(p, minus ? FT_JINJA_NODE_NEGATE : FT_JINJA_NODE_PLUS);
        ft_jinja_expect_operator(p, minus ? "-" : "+");
        ft_jinja_enter(p->run);
        node->a = ft_jinja_parse_unary(p, false);
        ft_jinja_leave(p->run);
    } else {
        node = ft_jinja_parse_primary(p);
    }
    node = ft_jinja_parse_postfix(p, node);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}
