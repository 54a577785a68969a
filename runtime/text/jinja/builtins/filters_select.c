/*
 * filters_select.c - map, select and reject, which apply other filters and tests by name; and so
 * the search for a filter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/filters.h"

#include "runtime/mem.h"

#include <string.h>

/* The arguments after the first `count`. */
static ft_jinja_args rest_of(const ft_jinja_args *all, size_t count)
{
    return (ft_jinja_args){ .value = all->value + count,
                            .count = all->count - count,
                            .keyword = all->keyword,
                            .keywords = all->keywords };
}

/* ---- map ---------------------------------------------------------------------------------- */

static const ft_jinja_value *keyword_of(const ft_jinja_args *args, const char *name)
{
    for (size_t i = 0; i < args->keywords; i++)
        if (strcmp(args->keyword[i].name, name) == 0)
            return &args->keyword[i].value;
    return NULL;
}

static ft_jinja_value map_attribute(ft_jinja_run *run, const ft_jinja_list *list,
                                    const ft_jinja_args *args, ft_jinja_value path)
{
    const ft_jinja_value *otherwise = keyword_of(args, "default");
    ft_jinja_list *mapped = ft_jinja_list_new(run, FT_JINJA_GENERATOR, list->count);
    if (args->keywords > (otherwise != NULL) + 1u)
        ft_jinja_fail(run, FT_EFORMAT, "map: found keywords other than attribute and default");
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_append(run, mapped, ft_jinja_path(run, list->item[i], path, otherwise));
        ft_jinja_spend(run, 1);
    }
    return ft_jinja_list_value(mapped);
}

static ft_jinja_value map(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    const ft_jinja_value *path = keyword_of(call->all, "attribute");
    if (call->all->count == 0 && path != NULL)
        return map_attribute(run, list, call->all, *path);
    const ft_jinja_string *name =
        call->all->count == 0 ? NULL : ft_jinja_arg_string(run, call->all->value[0]);
    if (name == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "map: needs a filter or an attribute");
    const ft_jinja_builtin *filter = ft_jinja_find_filter(name->data, name->bytes);
    if (filter == NULL)
        ft_jinja_fail_unknown(run, "filter", name->data, name->bytes);
    ft_jinja_list *mapped = ft_jinja_list_new(run, FT_JINJA_GENERATOR, list->count);
    ft_jinja_args args = rest_of(call->all, 1);
    ft_jinja_enter(run);
    for (size_t i = 0; i < list->count; i++)
        ft_jinja_append(run, mapped, ft_jinja_invoke(run, filter, list->item[i], &args));
    ft_jinja_leave(run);
    return ft_jinja_list_value(mapped);
}

/* ---- select and reject -------------------------------------------------------------------- */

static bool passes(ft_jinja_run *run, const ft_jinja_builtin *test, ft_jinja_value value,
                   const ft_jinja_args *args)
{
    return ft_jinja_truth(test == NULL ? value : ft_jinja_invoke(run, test, value, args));
}

/* The elements that pass a test, or do not; or those whose attribute does. */
static ft_jinja_value select_items(ft_jinja_run *run, const ft_jinja_call *call, bool by_attribute,
                                   bool wanted)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    const ft_jinja_builtin *test = NULL;
    size_t named = by_attribute;
    if (call->all->count < named)
        ft_jinja_fail(run, FT_EFORMAT, "selectattr: needs an attribute");
    if (call->all->count > named) {
        const ft_jinja_string *name = ft_jinja_arg_string(run, call->all->value[named]);
        test = name == NULL ? NULL : ft_jinja_find_test(name->data, name->bytes);
        if (test == NULL)
            ft_jinja_fail_unknown(run, "test", name == NULL ? "None" : name->data,
                                  name == NULL ? 4 : name->bytes);
    }
    ft_jinja_args args = rest_of(call->all, named + (test != NULL));
    ft_jinja_list *selected = ft_jinja_list_new(run, FT_JINJA_GENERATOR, 0);
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_value value = by_attribute
                                   ? ft_jinja_path(run, list->item[i], call->all->value[0], NULL)
                                   : list->item[i];
        if (passes(run, test, value, &args) == wanted)
            ft_jinja_append(run, selected, list->item[i]);
        ft_jinja_spend(run, 1);
    }
    return ft_jinja_list_value(selected);
}

static ft_jinja_value select_(ft_jinja_run *run, const ft_jinja_call *call)
{
    return select_items(run, call, false, true);
}

static ft_jinja_value reject(ft_jinja_run *run, const ft_jinja_call *call)
{
    return select_items(run, call, false, false);
}

static ft_jinja_value selectattr(ft_jinja_run *run, const ft_jinja_call *call)
{
    return select_items(run, call, true, true);
}

static ft_jinja_value rejectattr(ft_jinja_run *run, const ft_jinja_call *call)
{
    return select_items(run, call, true, false);
}

static const ft_jinja_builtin *find_select_filter(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "map", map, "*", 0 },
        { "reject", reject, "*", 0 },
        { "rejectattr", rejectattr, "*", 0 },
        { "select", select_, "*", 0 },
        { "selectattr", selectattr, "*", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}

const ft_jinja_builtin *ft_jinja_find_filter(const char *name, size_t bytes)
{
    const ft_jinja_builtin *found = ft_jinja_find_text_filter(name, bytes);
    if (found == NULL)
        found = ft_jinja_find_number_filter(name, bytes);
    if (found == NULL)
        found = ft_jinja_find_list_filter(name, bytes);
    if (found == NULL)
        found = find_select_filter(name, bytes);
    if (found == NULL)
        found = ft_jinja_find_sort_filter(name, bytes);
    return found;
}
