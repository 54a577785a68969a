/*
 * filters_list.c - filters that take a list apart or make one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/filters.h"

#include "runtime/mem.h"

#include <string.h>

/* A generator loses its first element alone. */
static ft_jinja_value first(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_list *list = ft_jinja_is_list(call->self, FT_JINJA_GENERATOR)
                              ? call->self.list
                              : ft_jinja_iterate(run, call->self);
    if (list->count == 0)
        return ft_jinja_undefined(run, "No first item, sequence was empty.");
    ft_jinja_value item = list->item[0];
    if (list->type == FT_JINJA_GENERATOR)
        *list =
            (ft_jinja_list){ .type = list->type, .count = list->count - 1, .item = list->item + 1 };
    return item;
}

static ft_jinja_value last(ft_jinja_run *run, const ft_jinja_call *call)
{
    if (ft_jinja_is_list(call->self, FT_JINJA_GENERATOR))
        ft_jinja_fail(run, FT_EFORMAT,
                      "last: a generator cannot be reversed; make it a list first");
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    return list->count == 0 ? ft_jinja_undefined(run, "No last item, sequence was empty.")
                            : list->item[list->count - 1];
}

static ft_jinja_value list_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_list *list = FT_JINJA_NEW(run, ft_jinja_list);
    *list = *ft_jinja_iterate(run, call->self);
    list->type = FT_JINJA_PLAIN_LIST;
    list->capacity = list->count; /* both share the elements, and none grows into them */
    return ft_jinja_list_value(list);
}

static ft_jinja_value items(ft_jinja_run *run, const ft_jinja_call *call)
{
    static const ft_jinja_args none = { 0 };
    ft_jinja_value found = ft_jinja_list_value(ft_jinja_list_new(run, FT_JINJA_GENERATOR, 0));
    if (call->self.kind == FT_JINJA_UNDEFINED)
        return found;
    if (call->self.kind != FT_JINJA_DICT)
        ft_jinja_fail(run, FT_EFORMAT, "items: found a value of type %s, expected a mapping",
                      ft_jinja_type_name(call->self));
    found = ft_jinja_invoke(run, ft_jinja_find_method(FT_JINJA_DICT, "items"), call->self, &none);
    found.list->type = FT_JINJA_GENERATOR;
    return found;
}

static ft_jinja_value reverse(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_value none = FT_JINJA_NONE_VALUE, minus = ft_jinja_int(-1);
    if (call->self.kind == FT_JINJA_STRING)
        return ft_jinja_slice(run, call->self, none, none, minus);
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    ft_jinja_list *reversed = ft_jinja_list_new(run, FT_JINJA_GENERATOR, list->count);
    for (size_t i = list->count; i > 0; i--)
        ft_jinja_append(run, reversed, list->item[i - 1]);
    ft_jinja_spend(run, list->count / 4);
    return ft_jinja_list_value(reversed);
}

static ft_jinja_value attr(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *name = ft_jinja_arg_string(run, call->arg[0]);
    if (name == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "attr: needs the name of an attribute");
    const char *text = ft_jinja_copy(run, name->data, name->bytes);
    if (call->self.kind == FT_JINJA_DICT && ft_jinja_find_method(FT_JINJA_DICT, text) == NULL)
        return ft_jinja_undefined(run, "'dict object' has no attribute '%.80s'", text);
    return ft_jinja_attribute(run, call->self, text);
}

static ft_jinja_value sum(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    bool by_path = call->arg[0].kind != FT_JINJA_MISSING && call->arg[0].kind != FT_JINJA_NONE;
    ft_jinja_value total = call->arg[1].kind == FT_JINJA_MISSING ? ft_jinja_int(0) : call->arg[1];
    if (total.kind == FT_JINJA_STRING)
        ft_jinja_fail(run, FT_EFORMAT, "sum: strings cannot be summed; use join");
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_value item =
            by_path ? ft_jinja_path(run, list->item[i], call->arg[0], NULL) : list->item[i];
        total = ft_jinja_calculate(run, FT_JINJA_ADD, total, item);
        ft_jinja_spend(run, 1);
    }
    return total;
}

const ft_jinja_builtin *ft_jinja_find_list_filter(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "attr", attr, "name", 1 },
        { "first", first, "", 0 },
        { "items", items, "", 0 },
        { "last", last, "", 0 },
        { "list", list_of, "", 0 },
        { "reverse", reverse, "", 0 },
        { "sum", sum, "attribute start", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
