/*
 * variables.c - scopes: names are looked up from the inside out and assigned in the innermost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"

static ft_jinja_variable_slot *find_slot(ft_jinja_interpreter *in, const ft_jinja_scope *scope,
                                         uint32_t symbol)
{
    size_t passed = 0;
    ft_jinja_variable_slot *slot = scope->first;
    for (; slot != NULL && slot->symbol != symbol; slot = slot->next)
        passed++;
    ft_jinja_spend(&in->run, passed / 16);
    return slot;
}

ft_jinja_value ft_jinja_lookup(ft_jinja_interpreter *in, const ft_jinja_node *name)
{
    for (const ft_jinja_scope *scope = in->scope; scope != NULL; scope = scope->outer) {
        const ft_jinja_variable_slot *slot = find_slot(in, scope, name->symbol);
        if (slot != NULL)
            return slot->value;
    }
    if (in->global[name->symbol].kind != FT_JINJA_MISSING)
        return in->global[name->symbol];
    if (name->builtin == NULL)
        return ft_jinja_undefined(&in->run, "'%.80s' is undefined", name->name);
    return (ft_jinja_value){ FT_JINJA_FUNCTION, { .function = name->builtin } };
}

void ft_jinja_assign(ft_jinja_interpreter *in, uint32_t symbol, ft_jinja_value value)
{
    if (in->scope == NULL) {
        in->global[symbol] = value;
        return;
    }
    ft_jinja_variable_slot *slot = find_slot(in, in->scope, symbol);
    if (slot == NULL) {
        slot = FT_JINJA_NEW(&in->run, ft_jinja_variable_slot);
        *slot = (ft_jinja_variable_slot){ .next = in->scope->first, .symbol = symbol };
        in->scope->first = slot;
    }
    slot->value = value;
}

static void assign_attribute(ft_jinja_interpreter *in, const ft_jinja_node *target,
                             ft_jinja_value value)
{
    ft_jinja_value of = ft_jinja_lookup(in, target->a);
    ft_jinja_require_defined(&in->run, of);
    if (of.kind != FT_JINJA_NAMESPACE)
        ft_jinja_fail(&in->run, FT_EFORMAT, "cannot assign attribute on non-namespace object");
    if (target->name[0] == '_')
        ft_jinja_fail(&in->run, FT_EFORMAT, "the attribute %.80s of a namespace begins with _",
                      target->name);
    ft_jinja_dict_set(&in->run, of.dict, ft_jinja_literal(&in->run, target->name), value);
}

static void assign_tuple(ft_jinja_interpreter *in, const ft_jinja_node *targets,
                         ft_jinja_value value)
{
    const ft_jinja_list *list = ft_jinja_iterate(&in->run, value);
    const ft_jinja_node *target = targets->list;
    size_t used = 0;
    for (; target != NULL && used < list->count; target = target->next)
        ft_jinja_assign_target(in, target, list->item[used++]);
    if (target != NULL || used < list->count)
        ft_jinja_fail(&in->run, FT_EFORMAT, "found %zu values to unpack, expected %s", list->count,
                      target != NULL ? "more" : "fewer");
}

void ft_jinja_assign_target(ft_jinja_interpreter *in, const ft_jinja_node *target,
                            ft_jinja_value value)
{
    if (target->kind == FT_JINJA_NODE_TUPLE)
        assign_tuple(in, target, value);
    else if (target->kind == FT_JINJA_NODE_ATTRIBUTE)
        assign_attribute(in, target, value);
    else
        ft_jinja_assign(in, target->symbol, value);
}

ft_jinja_scope *ft_jinja_open_scope(ft_jinja_interpreter *in, ft_jinja_scope *outer)
{
    ft_jinja_scope *before = in->scope;
    in->scope = FT_JINJA_NEW(&in->run, ft_jinja_scope);
    *in->scope = (ft_jinja_scope){ .outer = outer };
    return before;
}
