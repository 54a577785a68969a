/*
 * attribute.c - value.name, value[key], and the state of loops.
 *
 * The rules are those of jinja2's sandbox: value.name prefers a method, value["name"] an entry, and
 * methods that change a list or a dict do not exist.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "runtime/mem.h"

#include <string.h>

/* A name of Python's that the sandbox hides. */
static bool is_unsafe(ft_jinja_value value, const char *name)
{
    static const char *const lists[] = { "append", "clear",  "extend",  "insert",
                                         "pop",    "remove", "reverse", "sort" };
    static const char *const dicts[] = { "clear", "pop", "popitem", "setdefault", "update" };
    bool hidden = strncmp(name, "__", 2) == 0 && value.kind != FT_JINJA_DICT;
    for (size_t i = 0; i < FT_COUNT(lists); i++)
        hidden |= ft_jinja_is_list(value, FT_JINJA_PLAIN_LIST) && strcmp(name, lists[i]) == 0;
    for (size_t i = 0; i < FT_COUNT(dicts); i++)
        hidden |= value.kind == FT_JINJA_DICT && strcmp(name, dicts[i]) == 0;
    return hidden;
}

static ft_jinja_value method_of(ft_jinja_run *run, ft_jinja_value self,
                                const ft_jinja_builtin *builtin)
{
    ft_jinja_method *method = FT_JINJA_NEW(run, ft_jinja_method);
    *method = (ft_jinja_method){ self, builtin };
    return (ft_jinja_value){ FT_JINJA_METHOD, { .method = method } };
}

static ft_jinja_value neighbour(ft_jinja_run *run, const ft_jinja_loop *loop, bool next)
{
    if (next ? loop->index + 1 == loop->list->count : loop->index == 0)
        return ft_jinja_undefined(run, "there is no %s item", next ? "next" : "previous");
    return loop->list->item[next ? loop->index + 1 : loop->index - 1];
}

static ft_jinja_value loop_attribute(ft_jinja_run *run, const ft_jinja_loop *loop, const char *name)
{
    static const char *const names[] = { "index",  "index0",   "revindex", "revindex0",
                                         "length", "depth",    "depth0",   "first",
                                         "last",   "previtem", "nextitem" };
    int64_t index = (int64_t) loop->index, length = (int64_t) loop->list->count;
    const int64_t numbers[] = { index + 1, index, length - index, length - index - 1, length,
                                1,         0 /* deeper in recursive loops alone */ };
    size_t at = 0;
    while (at < FT_COUNT(names) && strcmp(name, names[at]) != 0)
        at++;
    if (at < FT_COUNT(numbers))
        return ft_jinja_int(numbers[at]);
    if (at < 9)
        return ft_jinja_bool(at == 7 ? index == 0 : index + 1 == length);
    if (at < FT_COUNT(names))
        return neighbour(run, loop, at == 10);
    return ft_jinja_undefined(run, "'loop' has no attribute '%.80s'", name);
}

static ft_jinja_value no_attribute(ft_jinja_run *run, ft_jinja_value value, const char *name)
{
    if (value.kind == FT_JINJA_NONE)
        return ft_jinja_undefined(run, "'None' has no attribute '%.80s'", name);
    return ft_jinja_undefined(run, "'%s object' has no attribute '%.80s'",
                              ft_jinja_type_name(value), name);
}

ft_jinja_value ft_jinja_attribute(ft_jinja_run *run, ft_jinja_value value, const char *name)
{
    ft_jinja_require_defined(run, value);
    ft_jinja_kind kind = ft_jinja_is_list(value, FT_JINJA_TUPLE) || value.kind != FT_JINJA_LIST ||
                                 value.list->type == FT_JINJA_PLAIN_LIST
                             ? value.kind
                             : FT_JINJA_NONE;
    const ft_jinja_builtin *builtin = ft_jinja_find_method(kind, name);
    ft_jinja_value *found = NULL;
    if (is_unsafe(value, name))
        return ft_jinja_undefined(run, "access to attribute '%.80s' of '%s' object is unsafe", name,
                                  ft_jinja_type_name(value));
    if (builtin != NULL)
        return method_of(run, value, builtin);
    if (value.kind == FT_JINJA_LOOP)
        return loop_attribute(run, value.loop, name);
    if (value.kind == FT_JINJA_DICT || value.kind == FT_JINJA_NAMESPACE)
        found = ft_jinja_dict_get_name(run, value.dict, name);
    return found != NULL ? *found : no_attribute(run, value, name);
}

ft_jinja_value ft_jinja_item(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value key)
{
    int64_t index;
    ft_jinja_require_defined(run, value);
    if (value.kind == FT_JINJA_DICT) {
        ft_jinja_value *found = ft_jinja_dict_get(run, value.dict, key);
        if (found != NULL)
            return *found;
    } else if (ft_jinja_to_integer(key, &index)) {
        return ft_jinja_index(run, value, index);
    }
    if (key.kind != FT_JINJA_STRING)
        return ft_jinja_undefined(run, "'%s object' has no such element",
                                  ft_jinja_type_name(value));
    return ft_jinja_attribute(run, value, ft_jinja_copy(run, key.string->data, key.string->bytes));
}

/* A part of a path, which is an index if it consists of digits. */
static ft_jinja_value path_part(ft_jinja_run *run, const ft_jinja_string *path, size_t start,
                                size_t end)
{
    int64_t index = 0;
    bool digits = end > start && end - start < 18;
    for (size_t i = start; digits && i < end; i++) {
        digits = path->data[i] >= '0' && path->data[i] <= '9';
        index = 10 * index + (path->data[i] - '0');
    }
    return digits ? ft_jinja_int(index) : ft_jinja_text(ft_jinja_substring(run, path, start, end));
}

static ft_jinja_value item_or(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value key,
                              const ft_jinja_value *otherwise)
{
    ft_jinja_value item = ft_jinja_item(run, value, key);
    return item.kind == FT_JINJA_UNDEFINED && otherwise != NULL ? *otherwise : item;
}

ft_jinja_value ft_jinja_path(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value path,
                             const ft_jinja_value *otherwise)
{
    if (path.kind != FT_JINJA_STRING)
        return item_or(run, value, path, otherwise);
    const ft_jinja_string *names = path.string;
    for (size_t start = 0, end; start <= names->bytes; start = end + 1) {
        const char *dot = memchr(names->data + start, '.', names->bytes - start);
        end = dot == NULL ? names->bytes : (size_t) (dot - names->data);
        value = item_or(run, value, path_part(run, names, start, end), otherwise);
    }
    return value;
}
