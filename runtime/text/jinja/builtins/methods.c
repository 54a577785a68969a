/*
 * methods.c - methods of dicts, lists and loops, and the search for a method.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/methods.h"

#include "runtime/mem.h"

#include <string.h>

/* ---- Dicts -------------------------------------------------------------------------------- */

static ft_jinja_value get(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_value *found = ft_jinja_dict_get(run, call->self.dict, call->arg[0]);
    if (found != NULL)
        return *found;
    return call->arg[1].kind == FT_JINJA_MISSING ? FT_JINJA_NONE_VALUE : call->arg[1];
}

/* A view as of now: templates cannot change a dict. */
static ft_jinja_value view(ft_jinja_run *run, const ft_jinja_dict *dict, bool keys, bool values)
{
    ft_jinja_list *list = ft_jinja_list_new(run, FT_JINJA_VIEW, dict->count);
    ft_jinja_spend(run, dict->count / 4);
    for (size_t i = 0; i < dict->count; i++) {
        ft_jinja_value item = keys ? dict->entry[i].key : dict->entry[i].value;
        if (keys && values) {
            ft_jinja_list *pair = ft_jinja_list_new(run, FT_JINJA_TUPLE, 2);
            ft_jinja_append(run, pair, item);
            ft_jinja_append(run, pair, dict->entry[i].value);
            item = ft_jinja_list_value(pair);
        }
        ft_jinja_append(run, list, item);
    }
    return ft_jinja_list_value(list);
}

static ft_jinja_value items(ft_jinja_run *run, const ft_jinja_call *call)
{
    return view(run, call->self.dict, true, true);
}

static ft_jinja_value keys(ft_jinja_run *run, const ft_jinja_call *call)
{
    return view(run, call->self.dict, true, false);
}

static ft_jinja_value values(ft_jinja_run *run, const ft_jinja_call *call)
{
    return view(run, call->self.dict, false, true);
}

/* Neither lists nor dicts change, so a copy is the same. */
static ft_jinja_value copy(ft_jinja_run *run, const ft_jinja_call *call)
{
    (void) run;
    return call->self;
}

const ft_jinja_builtin *ft_jinja_find_dict_method(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "copy", copy, "", 0 },   { "fromkeys", NULL, "", 0 }, { "get", get, "key default", 1 },
        { "items", items, "", 0 }, { "keys", keys, "", 0 },     { "values", values, "", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}

/* ---- Lists -------------------------------------------------------------------------------- */

static ft_jinja_value index_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = call->self.list;
    ft_jinja_spend(run, list->count / 8);
    for (size_t i = 0; i < list->count; i++)
        if (ft_jinja_equal(run, list->item[i], call->arg[0]))
            return ft_jinja_int((int64_t) i);
    ft_jinja_fail(run, FT_EFORMAT, "index(): the value is not in the list");
}

static ft_jinja_value count(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = call->self.list;
    int64_t found = 0;
    ft_jinja_spend(run, list->count / 8);
    for (size_t i = 0; i < list->count; i++)
        found += ft_jinja_equal(run, list->item[i], call->arg[0]);
    return ft_jinja_int(found);
}

const ft_jinja_builtin *ft_jinja_find_list_method(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "copy", copy, "", 0 },
        { "count", count, "value", 1 },
        { "index", index_of, "value", 1 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}

/* ---- Loops -------------------------------------------------------------------------------- */

static ft_jinja_value cycle(ft_jinja_run *run, const ft_jinja_call *call)
{
    if (call->all->count == 0)
        ft_jinja_fail(run, FT_EFORMAT, "loop.cycle() has no items to cycle through");
    return call->all->value[call->self.loop->index % call->all->count];
}

static ft_jinja_value changed(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_loop *loop = (ft_jinja_loop *) (uintptr_t) call->self.loop;
    ft_jinja_list *now = ft_jinja_list_new(run, FT_JINJA_TUPLE, call->all->count);
    for (size_t i = 0; i < call->all->count; i++)
        ft_jinja_append(run, now, call->all->value[i]);
    bool same = loop->changed != NULL &&
                ft_jinja_equal(run, ft_jinja_list_value(loop->changed), ft_jinja_list_value(now));
    loop->changed = now;
    return ft_jinja_bool(!same);
}

const ft_jinja_builtin *ft_jinja_find_loop_method(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "changed", changed, "*", 0 },
        { "cycle", cycle, "*", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}

/* ---- All ---------------------------------------------------------------------------------- */

const ft_jinja_builtin *ft_jinja_find_method(ft_jinja_kind kind, const char *name)
{
    size_t bytes = strlen(name);
    bool any = kind == FT_JINJA_MISSING;
    const ft_jinja_builtin *found = NULL;
    if (any || kind == FT_JINJA_STRING)
        found = ft_jinja_find_string_method(name, bytes);
    if (found == NULL && (any || kind == FT_JINJA_STRING))
        found = ft_jinja_find_split_method(name, bytes);
    if (found == NULL && (any || kind == FT_JINJA_LIST))
        found = ft_jinja_find_list_method(name, bytes);
    if (found == NULL && (any || kind == FT_JINJA_DICT))
        found = ft_jinja_find_dict_method(name, bytes);
    if (found == NULL && (any || kind == FT_JINJA_LOOP))
        found = ft_jinja_find_loop_method(name, bytes);
    return found;
}
