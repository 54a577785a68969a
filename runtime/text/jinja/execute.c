/*
 * execute.c - statements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"

static ft_jinja_flow execute_if(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    for (; node != NULL && node->kind == FT_JINJA_NODE_IF; node = node->otherwise)
        if (ft_jinja_truth(ft_jinja_evaluate(in, node->a)))
            return ft_jinja_execute(in, node->body);
    return ft_jinja_execute(in, node);
}

static void execute_set_block(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value text = ft_jinja_text(ft_jinja_capture(in, node->body, in->scope));
    if (node->b != NULL)
        text = ft_jinja_apply_filters(in, node->b, text);
    ft_jinja_assign_target(in, node->a, text);
}

static void execute_filter_block(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value text = ft_jinja_text(ft_jinja_capture(in, node->body, in->scope));
    ft_jinja_put_value(in->out, ft_jinja_apply_filters(in, node->a, text));
}

/* The values see the variables outside, and not each other. */
static ft_jinja_flow execute_with(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_scope *outer = ft_jinja_open_scope(in, in->scope), *inner = in->scope;
    for (const ft_jinja_node *set = node->list; set != NULL; set = set->next) {
        in->scope = outer;
        ft_jinja_value value = ft_jinja_evaluate(in, set->b);
        in->scope = inner;
        ft_jinja_assign_target(in, set->a, value);
    }
    ft_jinja_flow flow = ft_jinja_execute(in, node->body);
    in->scope = outer;
    return flow;
}

static void execute_call_block(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    const ft_jinja_node *call = node->a;
    ft_jinja_value callee = ft_jinja_evaluate(in, call->a);
    ft_jinja_args args = ft_jinja_evaluate_arguments(in, call->list);
    if (callee.kind != FT_JINJA_MACRO)
        ft_jinja_fail(&in->run, FT_EFORMAT,
                      "a call block calls a value of type %s, expected a macro",
                      ft_jinja_type_name(callee));
    ft_jinja_value caller = ft_jinja_macro_value(in, node->b);
    ft_jinja_put_value(in->out, ft_jinja_call_macro(in, callee.macro, &args, caller));
}

static ft_jinja_flow execute_one(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    switch (node->kind) {
    case FT_JINJA_NODE_DATA:
        ft_jinja_put_string(in->out, node->value.string);
        break;
    case FT_JINJA_NODE_OUTPUT:
        ft_jinja_put_value(in->out, ft_jinja_evaluate(in, node->a));
        break;
    case FT_JINJA_NODE_FOR:
        return ft_jinja_execute_for(in, node);
    case FT_JINJA_NODE_IF:
        return execute_if(in, node);
    case FT_JINJA_NODE_SET:
        ft_jinja_assign_target(in, node->a, ft_jinja_evaluate(in, node->b));
        break;
    case FT_JINJA_NODE_SET_BLOCK:
        execute_set_block(in, node);
        break;
    case FT_JINJA_NODE_MACRO:
        ft_jinja_assign(in, node->symbol, ft_jinja_macro_value(in, node));
        break;
    case FT_JINJA_NODE_CALL_BLOCK:
        execute_call_block(in, node);
        break;
    case FT_JINJA_NODE_FILTER_BLOCK:
        execute_filter_block(in, node);
        break;
    case FT_JINJA_NODE_WITH:
        return execute_with(in, node);
    case FT_JINJA_NODE_GENERATION:
        ft_jinja_put_string(in->out, ft_jinja_capture(in, node->body, in->scope));
        break;
    default:
        return node->kind == FT_JINJA_NODE_BREAK ? FT_JINJA_BREAK : FT_JINJA_CONTINUE;
    }
    return FT_JINJA_NEXT;
}

ft_jinja_flow ft_jinja_execute(ft_jinja_interpreter *in, const ft_jinja_node *statements)
{
    ft_jinja_flow flow = FT_JINJA_NEXT;
    ft_jinja_enter(&in->run);
    for (const ft_jinja_node *node = statements; node != NULL && flow == FT_JINJA_NEXT;
         node = node->next) {
        in->run.line = node->line;
        ft_jinja_spend(&in->run, 1);
        flow = execute_one(in, node);
    }
    ft_jinja_leave(&in->run);
    return flow;
}
