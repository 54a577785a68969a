/*
 * evaluate.c - the value of an expression.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"

static ft_jinja_value evaluate(ft_jinja_interpreter *in, const ft_jinja_node *node);

/* ---- Containers --------------------------------------------------------------------------- */

static ft_jinja_value evaluate_list(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_list_type type =
        node->kind == FT_JINJA_NODE_TUPLE ? FT_JINJA_TUPLE : FT_JINJA_PLAIN_LIST;
    ft_jinja_list *list = ft_jinja_list_new(&in->run, type, 0);
    for (const ft_jinja_node *item = node->list; item != NULL; item = item->next)
        ft_jinja_append(&in->run, list, evaluate(in, item));
    return ft_jinja_list_value(list);
}

static ft_jinja_value evaluate_dict(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_dict *dict = ft_jinja_dict_new(&in->run, 0);
    for (const ft_jinja_node *pair = node->list; pair != NULL; pair = pair->next) {
        ft_jinja_value key = evaluate(in, pair->a);
        ft_jinja_dict_set(&in->run, dict, key, evaluate(in, pair->b));
    }
    return ft_jinja_dict_value(dict);
}

static ft_jinja_value bound(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    return node == NULL ? FT_JINJA_NONE_VALUE : evaluate(in, node);
}

static ft_jinja_value evaluate_item(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value of = evaluate(in, node->a);
    const ft_jinja_node *index = node->b;
    if (index->kind != FT_JINJA_NODE_SLICE)
        return ft_jinja_item(&in->run, of, evaluate(in, index));
    ft_jinja_value start = bound(in, index->a), stop = bound(in, index->b);
    return ft_jinja_slice(&in->run, of, start, stop, bound(in, index->c));
}

/* ---- Comparisons and texts ---------------------------------------------------------------- */

static bool compare(ft_jinja_run *run, ft_jinja_comparison comparison, ft_jinja_value a,
                    ft_jinja_value b)
{
    switch (comparison) {
    case FT_JINJA_EQ:
        return ft_jinja_equal(run, a, b);
    case FT_JINJA_NE:
        return !ft_jinja_equal(run, a, b);
    case FT_JINJA_LT:
        return ft_jinja_less(run, a, b, false);
    case FT_JINJA_LE:
        return ft_jinja_less(run, a, b, true);
    case FT_JINJA_GT:
        return ft_jinja_less(run, b, a, false);
    case FT_JINJA_GE:
        return ft_jinja_less(run, b, a, true);
    case FT_JINJA_IN:
        return ft_jinja_contains(run, b, a);
    default:
        return !ft_jinja_contains(run, b, a);
    }
}

/* a < b < c compares neighbours until one comparison fails. */
static ft_jinja_value evaluate_compare(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    bool holds = true;
    ft_jinja_value left = evaluate(in, node->a);
    for (const ft_jinja_node *next = node->list; holds && next != NULL; next = next->next) {
        ft_jinja_value right = evaluate(in, next->a);
        holds = compare(&in->run, next->comparison, left, right);
        left = right;
    }
    return ft_jinja_bool(holds);
}

static ft_jinja_value evaluate_concat(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_builder text = { .run = &in->run };
    for (const ft_jinja_node *part = node->list; part != NULL; part = part->next)
        ft_jinja_put_value(&text, evaluate(in, part));
    return ft_jinja_text(ft_jinja_built(&text));
}

static ft_jinja_value evaluate_if_else(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    if (ft_jinja_truth(evaluate(in, node->b)))
        return evaluate(in, node->a);
    return node->c != NULL ? evaluate(in, node->c)
                           : ft_jinja_undefined(&in->run, "an inline if without else has no value");
}

static ft_jinja_value evaluate_sign(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value value = evaluate(in, node->a);
    if (node->kind == FT_JINJA_NODE_NEGATE)
        return ft_jinja_negate(&in->run, value);
    return ft_jinja_calculate(&in->run, FT_JINJA_ADD, ft_jinja_int(0), value);
}

/* ---- Calls, filters, tests ---------------------------------------------------------------- */

ft_jinja_args ft_jinja_evaluate_arguments(ft_jinja_interpreter *in, const ft_jinja_node *list)
{
    size_t values = 0, keywords = 0;
    for (const ft_jinja_node *node = list; node != NULL; node = node->next)
        *(node->kind == FT_JINJA_NODE_KEYWORD ? &keywords : &values) += 1;
    ft_jinja_value *value = ft_jinja_alloc(&in->run, values, sizeof *value);
    ft_jinja_keyword *keyword = ft_jinja_alloc(&in->run, keywords, sizeof *keyword);
    ft_jinja_args args = { .value = value, .keyword = keyword };
    for (const ft_jinja_node *node = list; node != NULL; node = node->next)
        if (node->kind == FT_JINJA_NODE_KEYWORD)
            keyword[args.keywords++] = (ft_jinja_keyword){ node->name, evaluate(in, node->a) };
        else
            value[args.count++] = evaluate(in, node);
    return args;
}

ft_jinja_value ft_jinja_call_value(ft_jinja_interpreter *in, ft_jinja_value callee,
                                   const ft_jinja_args *args)
{
    static const ft_jinja_value missing = { .kind = FT_JINJA_MISSING };
    ft_jinja_require_defined(&in->run, callee);
    if (callee.kind == FT_JINJA_METHOD)
        return ft_jinja_invoke(&in->run, callee.method->builtin, callee.method->self, args);
    if (callee.kind == FT_JINJA_FUNCTION)
        return ft_jinja_invoke(&in->run, callee.function, FT_JINJA_NONE_VALUE, args);
    if (callee.kind != FT_JINJA_MACRO)
        ft_jinja_fail(&in->run, FT_EFORMAT, "'%s' object is not callable",
                      ft_jinja_type_name(callee));
    return in->call_macro(in, callee.macro, args, missing);
}

static ft_jinja_value evaluate_call(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value callee = evaluate(in, node->a);
    ft_jinja_args args = ft_jinja_evaluate_arguments(in, node->list);
    in->run.line = node->line;
    return ft_jinja_call_value(in, callee, &args);
}

static ft_jinja_value invoke(ft_jinja_interpreter *in, const ft_jinja_node *node,
                             ft_jinja_value self)
{
    ft_jinja_args args = ft_jinja_evaluate_arguments(in, node->list);
    in->run.line = node->line;
    return ft_jinja_invoke(&in->run, node->builtin, self, &args);
}

ft_jinja_value ft_jinja_apply_filters(ft_jinja_interpreter *in, const ft_jinja_node *filters,
                                      ft_jinja_value text)
{
    ft_jinja_enter(&in->run);
    if (filters->a != NULL)
        text = ft_jinja_apply_filters(in, filters->a, text);
    ft_jinja_leave(&in->run);
    return invoke(in, filters, text);
}

/* ---- All ---------------------------------------------------------------------------------- */

static ft_jinja_value evaluate_kind(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_value a;
    switch (node->kind) {
    case FT_JINJA_NODE_LIST:
    case FT_JINJA_NODE_TUPLE:
        return evaluate_list(in, node);
    case FT_JINJA_NODE_DICT:
        return evaluate_dict(in, node);
    case FT_JINJA_NODE_ATTRIBUTE:
        return ft_jinja_attribute(&in->run, evaluate(in, node->a), node->name);
    case FT_JINJA_NODE_ITEM:
        return evaluate_item(in, node);
    case FT_JINJA_NODE_CALL:
        return evaluate_call(in, node);
    case FT_JINJA_NODE_FILTER:
    case FT_JINJA_NODE_TEST:
        return invoke(in, node, evaluate(in, node->a));
    case FT_JINJA_NODE_NOT:
        return ft_jinja_bool(!ft_jinja_truth(evaluate(in, node->a)));
    case FT_JINJA_NODE_AND:
        a = evaluate(in, node->a);
        return ft_jinja_truth(a) ? evaluate(in, node->b) : a;
    case FT_JINJA_NODE_OR:
        a = evaluate(in, node->a);
        return ft_jinja_truth(a) ? a : evaluate(in, node->b);
    case FT_JINJA_NODE_NEGATE:
    case FT_JINJA_NODE_PLUS:
        return evaluate_sign(in, node);
    case FT_JINJA_NODE_BINARY:
        a = evaluate(in, node->a);
        return ft_jinja_calculate(&in->run, node->op, a, evaluate(in, node->b));
    case FT_JINJA_NODE_CONCAT:
        return evaluate_concat(in, node);
    case FT_JINJA_NODE_COMPARE:
        return evaluate_compare(in, node);
    default:
        return evaluate_if_else(in, node);
    }
}

static ft_jinja_value evaluate(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    ft_jinja_spend(&in->run, 1);
    in->run.line = node->line;
    if (node->kind == FT_JINJA_NODE_CONSTANT)
        return node->value;
    if (node->kind == FT_JINJA_NODE_NAME)
        return ft_jinja_lookup(in, node);
    ft_jinja_enter(&in->run);
    ft_jinja_value value = evaluate_kind(in, node);
    ft_jinja_leave(&in->run);
    return value;
}

ft_jinja_value ft_jinja_evaluate(ft_jinja_interpreter *in, const ft_jinja_node *node)
{
    return evaluate(in, node);
}
