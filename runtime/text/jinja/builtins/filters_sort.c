/*
 * filters_sort.c - filters that compare the elements of a list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/filters.h"

#include "runtime/mem.h"

#include <string.h>

ft_jinja_value ft_jinja_sort_key(ft_jinja_run *run, ft_jinja_value item, ft_jinja_value path,
                                 bool case_sensitive)
{
    if (path.kind != FT_JINJA_MISSING && path.kind != FT_JINJA_NONE)
        item = ft_jinja_path(run, item, path, NULL);
    if (item.kind == FT_JINJA_STRING && !case_sensitive)
        item = ft_jinja_text(ft_jinja_convert_case(run, item.string, FT_JINJA_LOWER));
    return item;
}

typedef struct {
    ft_jinja_value key, item;
} pair;

/* Merge sort is stable, as Python's is; a reversed one keeps equal elements in order, too. */
static void sort_pairs(ft_jinja_run *run, pair *pairs, pair *other, size_t count, bool reverse)
{
    size_t half = count / 2, a = 0, b = half, n = 0;
    if (count < 2)
        return;
    sort_pairs(run, pairs, other, half, reverse);
    sort_pairs(run, pairs + half, other, count - half, reverse);
    while (a < half && b < count) {
        bool take_second = reverse ? ft_jinja_less(run, pairs[a].key, pairs[b].key, false)
                                   : ft_jinja_less(run, pairs[b].key, pairs[a].key, false);
        other[n++] = take_second ? pairs[b++] : pairs[a++];
        ft_jinja_spend(run, 1);
    }
    memcpy(other + n, pairs + a, (half - a) * sizeof *pairs);
    n += half - a;
    memcpy(pairs, other, n * sizeof *pairs);
}

/* The elements of a list in the order of their keys; keys[i] belongs to element i. */
static ft_jinja_list *sorted(ft_jinja_run *run, const ft_jinja_list *list,
                             const ft_jinja_list *keys, bool reverse)
{
    pair *pairs = ft_jinja_alloc(run, 2 * list->count, sizeof *pairs);
    ft_jinja_list *out = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, list->count);
    for (size_t i = 0; i < list->count; i++)
        pairs[i] = (pair){ keys->item[i], list->item[i] };
    sort_pairs(run, pairs, pairs + list->count, list->count, reverse);
    for (size_t i = 0; i < list->count; i++)
        ft_jinja_append(run, out, pairs[i].item);
    return out;
}

/* Several attributes with commas between, "a,b", are sorted by as a tuple. */
static ft_jinja_value key_of(ft_jinja_run *run, ft_jinja_value item, ft_jinja_value path,
                             bool case_sensitive)
{
    const ft_jinja_string *names = path.kind == FT_JINJA_STRING ? path.string : NULL;
    if (names == NULL || memchr(names->data, ',', names->bytes) == NULL)
        return ft_jinja_sort_key(run, item, path, case_sensitive);
    ft_jinja_list *keys = ft_jinja_list_new(run, FT_JINJA_TUPLE, 2);
    for (size_t start = 0, end; start <= names->bytes; start = end + 1) {
        const char *comma = memchr(names->data + start, ',', names->bytes - start);
        end = comma == NULL ? names->bytes : (size_t) (comma - names->data);
        ft_jinja_value name = ft_jinja_text(ft_jinja_substring(run, names, start, end));
        ft_jinja_append(run, keys, ft_jinja_sort_key(run, item, name, case_sensitive));
    }
    return ft_jinja_list_value(keys);
}

static ft_jinja_value sort(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    bool reverse = ft_jinja_arg_truth(call->arg[0], false),
         case_sensitive = ft_jinja_arg_truth(call->arg[1], false);
    ft_jinja_list *keys = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, list->count);
    for (size_t i = 0; i < list->count; i++)
        ft_jinja_append(run, keys, key_of(run, list->item[i], call->arg[2], case_sensitive));
    return ft_jinja_list_value(sorted(run, list, keys, reverse));
}

static ft_jinja_value dictsort(ft_jinja_run *run, const ft_jinja_call *call)
{
    static const ft_jinja_args none = { 0 };
    const ft_jinja_string *by = ft_jinja_arg_string(run, call->arg[1]);
    bool case_sensitive = ft_jinja_arg_truth(call->arg[0], false),
         by_value = by != NULL && ft_jinja_string_is(by, "value"),
         reverse = ft_jinja_arg_truth(call->arg[2], false);
    if (call->self.kind != FT_JINJA_DICT)
        ft_jinja_fail(run, FT_EFORMAT, "dictsort: found a value of type %s, expected a dict",
                      ft_jinja_type_name(call->self));
    ft_jinja_value items =
        ft_jinja_invoke(run, ft_jinja_find_method(FT_JINJA_DICT, "items"), call->self, &none);
    ft_jinja_list *keys = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, items.list->count);
    for (size_t i = 0; i < items.list->count; i++)
        ft_jinja_append(
            run, keys,
            ft_jinja_sort_key(run, items.list->item[i], ft_jinja_int(by_value), case_sensitive));
    return ft_jinja_list_value(sorted(run, items.list, keys, reverse));
}

static ft_jinja_value unique(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    bool case_sensitive = ft_jinja_arg_truth(call->arg[0], false);
    ft_jinja_list *seen = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    ft_jinja_list *out = ft_jinja_list_new(run, FT_JINJA_GENERATOR, 0);
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_value key = ft_jinja_sort_key(run, list->item[i], call->arg[1], case_sensitive);
        if (ft_jinja_contains(run, ft_jinja_list_value(seen), key))
            continue;
        ft_jinja_append(run, seen, key);
        ft_jinja_append(run, out, list->item[i]);
    }
    return ft_jinja_list_value(out);
}

/* The first of the smallest elements, or of the largest. */
static ft_jinja_value extreme(ft_jinja_run *run, const ft_jinja_call *call, bool largest)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    bool case_sensitive = ft_jinja_arg_truth(call->arg[0], false);
    ft_jinja_value best = { .kind = FT_JINJA_MISSING };
    size_t at = 0;
    if (list->count == 0)
        return ft_jinja_undefined(run, "No aggregated item, sequence was empty.");
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_value key = ft_jinja_sort_key(run, list->item[i], call->arg[1], case_sensitive);
        bool better = i == 0 || (largest ? ft_jinja_less(run, best, key, false)
                                         : ft_jinja_less(run, key, best, false));
        if (better) {
            best = key;
            at = i;
        }
        ft_jinja_spend(run, 1);
    }
    return list->item[at];
}

static ft_jinja_value min(ft_jinja_run *run, const ft_jinja_call *call)
{
    return extreme(run, call, false);
}

static ft_jinja_value max(ft_jinja_run *run, const ft_jinja_call *call)
{
    return extreme(run, call, true);
}

const ft_jinja_builtin *ft_jinja_find_sort_filter(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "dictsort", dictsort, "case_sensitive by reverse", 0 },
        { "max", max, "case_sensitive attribute", 0 },
        { "min", min, "case_sensitive attribute", 0 },
        { "sort", sort, "reverse case_sensitive attribute", 0 },
        { "unique", unique, "case_sensitive attribute", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
