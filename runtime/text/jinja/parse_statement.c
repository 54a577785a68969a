/*
 * parse_statement.c - statements: what stands between {% and %}.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/parser.h"

#include "runtime/mem.h"

#include <string.h>

static void expect_close(ft_jinja_parser *p)
{
    ft_jinja_expect(p, FT_JINJA_TOKEN_CLOSE, "the end of the tag");
}

/* Statements up to the tag `end`, and that tag. */
static const ft_jinja_node *parse_body(ft_jinja_parser *p, const char *end)
{
    const char *const until[] = { end, NULL };
    expect_close(p);
    const ft_jinja_node *body = ft_jinja_parse_statements(p, until);
    ft_jinja_expect_name(p, end);
    return body;
}

/* ---- for, if ------------------------------------------------------------------------------ */

static ft_jinja_node *parse_target_name(ft_jinja_parser *p)
{
    static const char *const constants[] = { "true", "false", "none", "True", "False", "None" };
    for (size_t i = 0; i < FT_COUNT(constants); i++)
        if (ft_jinja_at_name(p, constants[i]))
            ft_jinja_fail_expected(p, "a name to assign to");
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_NAME);
    node->name = ft_jinja_parse_name(p);
    node->symbol = ft_jinja_symbol_number(p, node->name);
    return node;
}

static ft_jinja_node *parse_one_target(ft_jinja_parser *p)
{
    if (!ft_jinja_skip_operator(p, "("))
        return parse_target_name(p);
    ft_jinja_enter(p->run);
    ft_jinja_node *node = ft_jinja_parse_target(p, false);
    ft_jinja_leave(p->run);
    ft_jinja_expect_operator(p, ")");
    return node;
}

ft_jinja_node *ft_jinja_parse_target(ft_jinja_parser *p, bool with_attribute)
{
    ft_jinja_node_list targets = { 0 };
    ft_jinja_node *node = parse_one_target(p);
    if (with_attribute && ft_jinja_skip_operator(p, ".")) {
        ft_jinja_node *attribute = ft_jinja_node_new(p, FT_JINJA_NODE_ATTRIBUTE);
        attribute->a = node;
        attribute->name = ft_jinja_parse_name(p);
        return attribute;
    }
    if (!ft_jinja_at_operator(p, ","))
        return node;
    ft_jinja_node *tuple = ft_jinja_node_new(p, FT_JINJA_NODE_TUPLE);
    ft_jinja_node_append(&targets, node);
    while (ft_jinja_skip_operator(p, ","))
        if (p->token->kind != FT_JINJA_TOKEN_CLOSE && !ft_jinja_at_name(p, "in") &&
            !ft_jinja_at_operator(p, "=") && !ft_jinja_at_operator(p, ")"))
            ft_jinja_node_append(&targets, parse_one_target(p));
    tuple->list = targets.first;
    return tuple;
}

static ft_jinja_node *parse_for(ft_jinja_parser *p)
{
    static const char *const until[] = { "else", "endfor", NULL };
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_FOR);
    node->a = ft_jinja_parse_target(p, false);
    ft_jinja_expect_name(p, "in");
    ft_jinja_node *iterated = ft_jinja_parse_or(p);
    if (ft_jinja_at_operator(p, ",")) /* for x in a, b */
        ft_jinja_fail_unknown(p->run, "loop over", "a, b", 4);
    node->b = iterated;
    if (ft_jinja_skip_name(p, "if"))
        node->c = ft_jinja_parse_expression(p);
    if (ft_jinja_at_name(p, "recursive"))
        ft_jinja_fail_unknown(p->run, "loop", "recursive", 9);
    expect_close(p);
    p->loops++;
    node->body = ft_jinja_parse_statements(p, until);
    p->loops--;
    if (ft_jinja_skip_name(p, "else"))
        node->otherwise = parse_body(p, "endfor");
    else
        ft_jinja_expect_name(p, "endfor");
    return node;
}

/* if, then elif as the `otherwise` of the one before. */
static ft_jinja_node *parse_if(ft_jinja_parser *p)
{
    static const char *const until[] = { "elif", "else", "endif", NULL };
    ft_jinja_node *first = NULL, *last = NULL;
    do {
        ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_IF);
        node->a = ft_jinja_parse_tuple(p, false);
        expect_close(p);
        node->body = ft_jinja_parse_statements(p, until);
        if (last != NULL)
            last->otherwise = node;
        else
            first = node;
        last = node;
    } while (ft_jinja_skip_name(p, "elif"));
    if (ft_jinja_skip_name(p, "else"))
        last->otherwise = parse_body(p, "endif");
    else
        ft_jinja_expect_name(p, "endif");
    return first;
}

static ft_jinja_node *parse_jump(ft_jinja_parser *p, ft_jinja_node_kind kind)
{
    if (p->loops == 0)
        ft_jinja_fail(p->run, FT_EFORMAT, "found %s outside a loop",
                      kind == FT_JINJA_NODE_BREAK ? "break" : "continue");
    return ft_jinja_node_new(p, kind);
}

/* ---- set, with, filter, generation -------------------------------------------------------- */

static ft_jinja_node *parse_set(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_SET);
    node->a = ft_jinja_parse_target(p, true);
    if (ft_jinja_skip_operator(p, "=")) {
        node->b = ft_jinja_parse_tuple(p, false);
        return node;
    }
    node->kind = FT_JINJA_NODE_SET_BLOCK;
    if (ft_jinja_skip_operator(p, "|"))
        node->b = ft_jinja_parse_filters(p, NULL);
    node->body = parse_body(p, "endset");
    return node;
}

static ft_jinja_node *parse_with(ft_jinja_parser *p)
{
    ft_jinja_node_list sets = { 0 };
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_WITH);
    while (p->token->kind != FT_JINJA_TOKEN_CLOSE) {
        if (sets.count > 0)
            ft_jinja_expect_operator(p, ",");
        ft_jinja_node *set = ft_jinja_node_new(p, FT_JINJA_NODE_SET);
        set->a = parse_target_name(p);
        ft_jinja_expect_operator(p, "=");
        set->b = ft_jinja_parse_expression(p);
        ft_jinja_node_append(&sets, set);
    }
    node->list = sets.first;
    node->body = parse_body(p, "endwith");
    return node;
}

static ft_jinja_node *parse_filter_block(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_FILTER_BLOCK);
    node->a = ft_jinja_parse_filters(p, NULL);
    node->body = parse_body(p, "endfilter");
    return node;
}

static ft_jinja_node *parse_generation(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_GENERATION);
    node->body = parse_body(p, "endgeneration");
    return node;
}

/* ---- macro, call -------------------------------------------------------------------------- */

static const ft_jinja_node *parse_parameters(ft_jinja_parser *p)
{
    ft_jinja_node_list parameters = { 0 };
    ft_jinja_expect_operator(p, "(");
    while (!ft_jinja_skip_operator(p, ")")) {
        if (parameters.count > 0)
            ft_jinja_expect_operator(p, ",");
        if (ft_jinja_skip_operator(p, ")"))
            break;
        ft_jinja_node *parameter = parse_target_name(p);
        parameter->kind = FT_JINJA_NODE_PARAMETER;
        if (ft_jinja_skip_operator(p, "="))
            parameter->a = ft_jinja_parse_expression(p);
        else if (parameters.last != NULL && parameters.last->a != NULL)
            ft_jinja_fail(p->run, FT_EFORMAT, "the parameter %s without a default follows one with",
                          parameter->name);
        ft_jinja_node_append(&parameters, parameter);
    }
    return parameters.first;
}

/* The body of a macro is in no loop. */
static void parse_macro_body(ft_jinja_parser *p, ft_jinja_node *macro, const char *end)
{
    size_t loops = p->loops;
    p->loops = 0;
    p->macros++;
    macro->body = parse_body(p, end);
    p->macros--;
    p->loops = loops;
}

static ft_jinja_node *parse_macro(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_MACRO);
    node->name = ft_jinja_parse_name(p);
    node->symbol = ft_jinja_symbol_number(p, node->name);
    node->list = parse_parameters(p);
    parse_macro_body(p, node, "endmacro");
    return node;
}

static ft_jinja_node *parse_call_block(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_CALL_BLOCK);
    ft_jinja_node *caller = ft_jinja_node_new(p, FT_JINJA_NODE_MACRO);
    caller->name = "caller";
    caller->symbol = p->template->caller;
    if (ft_jinja_at_operator(p, "("))
        caller->list = parse_parameters(p);
    node->a = ft_jinja_parse_expression(p);
    if (node->a->kind != FT_JINJA_NODE_CALL)
        ft_jinja_fail(p->run, FT_EFORMAT, "expected a call of a macro");
    parse_macro_body(p, caller, "endcall");
    node->b = caller;
    return node;
}

/* ---- Statements --------------------------------------------------------------------------- */

static ft_jinja_node *parse_block(ft_jinja_parser *p)
{
    if (ft_jinja_skip_name(p, "for"))
        return parse_for(p);
    if (ft_jinja_skip_name(p, "if"))
        return parse_if(p);
    if (ft_jinja_skip_name(p, "set"))
        return parse_set(p);
    if (ft_jinja_skip_name(p, "macro"))
        return parse_macro(p);
    if (ft_jinja_skip_name(p, "call"))
        return parse_call_block(p);
    if (ft_jinja_skip_name(p, "filter"))
        return parse_filter_block(p);
    if (ft_jinja_skip_name(p, "with"))
        return parse_with(p);
    if (ft_jinja_skip_name(p, "generation"))
        return parse_generation(p);
    if (ft_jinja_skip_name(p, "break"))
        return parse_jump(p, FT_JINJA_NODE_BREAK);
    if (ft_jinja_skip_name(p, "continue"))
        return parse_jump(p, FT_JINJA_NODE_CONTINUE);
    if (p->token->kind != FT_JINJA_TOKEN_NAME)
        ft_jinja_fail_expected(p, "the name of a statement");
    ft_jinja_fail_unknown(p->run, "statement", p->token->text, p->token->bytes);
}

/* Refuse the filter `safe` but at the end of an output. */
static void check_safe(ft_jinja_parser *p)
{
    if (p->safes == 0)
        return;
    p->run->line = p->safe_line;
    ft_jinja_fail_unknown(p->run, "filter", "safe", 4);
}

static ft_jinja_node *parse_output(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_OUTPUT);
    ft_jinja_expect(p, FT_JINJA_TOKEN_OPEN, "{{");
    node->a = ft_jinja_parse_tuple(p, false);
    if (node->a->kind == FT_JINJA_NODE_FILTER && node->a->builtin == NULL) {
        node->a = node->a->a;
        p->safes--;
    }
    return node;
}

static ft_jinja_node *parse_data(ft_jinja_parser *p)
{
    ft_jinja_node *node = ft_jinja_node_new(p, FT_JINJA_NODE_DATA);
    node->value =
        ft_jinja_text(ft_jinja_string_new(p->run, p->token->text, p->token->bytes, false));
    ft_jinja_expect(p, FT_JINJA_TOKEN_DATA, "text");
    return node;
}

static bool at_one_of(const ft_jinja_parser *p, const char *const *names)
{
    bool at = false;
    for (; names != NULL && *names != NULL; names++)
        at |= ft_jinja_at_name(p, *names);
    return at;
}

/* The next statement; NULL at the end. */
static ft_jinja_node *parse_statement(ft_jinja_parser *p, const char *const *until)
{
    ft_jinja_node *node;
    if (p->token->kind == FT_JINJA_TOKEN_END)
        return NULL;
    if (p->token->kind == FT_JINJA_TOKEN_DATA)
        return parse_data(p);
    if (p->token->kind == FT_JINJA_TOKEN_OPEN) {
        node = parse_output(p);
    } else {
        ft_jinja_expect(p, FT_JINJA_TOKEN_BLOCK, "{%");
        if (at_one_of(p, until))
            return NULL;
        node = parse_block(p);
    }
    check_safe(p);
    expect_close(p);
    return node;
}

const ft_jinja_node *ft_jinja_parse_statements(ft_jinja_parser *p, const char *const *until)
{
    ft_jinja_node_list statements = { 0 };
    ft_jinja_node *node;
    ft_jinja_enter(p->run);
    while ((node = parse_statement(p, until)) != NULL)
        ft_jinja_node_append(&statements, node);
    if (until != NULL && p->token->kind == FT_JINJA_TOKEN_END)
        ft_jinja_fail_expected(p, until[0]);
    ft_jinja_leave(p->run);
    return statements.first;
}
