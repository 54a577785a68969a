/*
 * value.c - constructors, truth, equality and order of values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/value.h"

#include "runtime/mem.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

ft_jinja_value ft_jinja_undefined(ft_jinja_run *run, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return (ft_jinja_value){ FT_JINJA_UNDEFINED,
                             { .missing = ft_jinja_copy(run, text, strlen(text)) } };
}

ft_jinja_value ft_jinja_literal(ft_jinja_run *run, const char *text)
{
    return ft_jinja_text(ft_jinja_string_new(run, text, strlen(text), false));
}

const char *ft_jinja_type_name(ft_jinja_value value)
{
    static const char *const names[] = {
        [FT_JINJA_MISSING] = "Undefined", [FT_JINJA_UNDEFINED] = "Undefined",
        [FT_JINJA_NONE] = "NoneType",     [FT_JINJA_BOOL] = "bool",
        [FT_JINJA_INT] = "int",           [FT_JINJA_FLOAT] = "float",
        [FT_JINJA_STRING] = "str",        [FT_JINJA_LIST] = "list",
        [FT_JINJA_DICT] = "dict",         [FT_JINJA_NAMESPACE] = "Namespace",
        [FT_JINJA_METHOD] = "method",     [FT_JINJA_FUNCTION] = "function",
        [FT_JINJA_MACRO] = "Macro",       [FT_JINJA_LOOP] = "LoopContext",
    };
    static const char *const lists[] = {
        [FT_JINJA_PLAIN_LIST] = "list",     [FT_JINJA_TUPLE] = "tuple",
        [FT_JINJA_RANGE] = "range",         [FT_JINJA_VIEW] = "dict view",
        [FT_JINJA_GENERATOR] = "generator",
    };
    return value.kind == FT_JINJA_LIST ? lists[value.list->type] : names[value.kind];
}

void ft_jinja_require_defined(ft_jinja_run *run, ft_jinja_value value)
{
    if (value.kind == FT_JINJA_UNDEFINED)
        ft_jinja_fail(run, FT_EFORMAT, "%s", value.missing);
}

/* ---- Lists and dicts ---------------------------------------------------------------------- */

ft_jinja_list *ft_jinja_list_new(ft_jinja_run *run, ft_jinja_list_type type, size_t capacity)
{
    ft_jinja_list *list = FT_JINJA_NEW(run, ft_jinja_list);
    *list = (ft_jinja_list){ .type = type, .capacity = capacity };
    list->item = ft_jinja_alloc(run, capacity, sizeof *list->item);
    return list;
}

void ft_jinja_append(ft_jinja_run *run, ft_jinja_list *list, ft_jinja_value value)
{
    if (list->count == list->capacity) {
        ft_jinja_list *larger = ft_jinja_list_new(run, list->type, 2 * list->capacity + 4);
        memcpy(larger->item, list->item, list->count * sizeof *list->item);
        larger->count = list->count;
        *list = *larger;
    }
    list->item[list->count++] = value;
}

ft_jinja_dict *ft_jinja_dict_new(ft_jinja_run *run, size_t capacity)
{
    ft_jinja_dict *dict = FT_JINJA_NEW(run, ft_jinja_dict);
    *dict = (ft_jinja_dict){ .capacity = capacity };
    dict->entry = ft_jinja_alloc(run, capacity, sizeof *dict->entry);
    return dict;
}

static void require_hashable(ft_jinja_run *run, ft_jinja_value key)
{
    bool hashable = key.kind != FT_JINJA_DICT && key.kind != FT_JINJA_NAMESPACE &&
                    !ft_jinja_is_list(key, FT_JINJA_PLAIN_LIST);
    if (!hashable)
        ft_jinja_fail(run, FT_EFORMAT, "a key of a dict is of type %s, which cannot be hashed",
                      ft_jinja_type_name(key));
}

ft_jinja_value *ft_jinja_dict_get(ft_jinja_run *run, const ft_jinja_dict *dict, ft_jinja_value key)
{
    require_hashable(run, key);
    ft_jinja_spend(run, dict->count / 8);
    for (size_t i = 0; i < dict->count; i++)
        if (ft_jinja_equal(run, dict->entry[i].key, key))
            return &dict->entry[i].value;
    return NULL;
}

ft_jinja_value *ft_jinja_dict_get_name(ft_jinja_run *run, const ft_jinja_dict *dict,
                                       const char *name)
{
    ft_jinja_spend(run, dict->count / 8);
    for (size_t i = 0; i < dict->count; i++) {
        ft_jinja_value key = dict->entry[i].key;
        if (key.kind == FT_JINJA_STRING && ft_jinja_string_is(key.string, name))
            return &dict->entry[i].value;
    }
    return NULL;
}

void ft_jinja_dict_set(ft_jinja_run *run, ft_jinja_dict *dict, ft_jinja_value key,
                       ft_jinja_value value)
{
    ft_jinja_value *found = ft_jinja_dict_get(run, dict, key);
    if (found != NULL) {
        *found = value;
        return;
    }
    if (dict->count == dict->capacity) {
        ft_jinja_dict *larger = ft_jinja_dict_new(run, 2 * dict->capacity + 4);
        memcpy(larger->entry, dict->entry, dict->count * sizeof *dict->entry);
        larger->count = dict->count;
        *dict = *larger;
    }
    dict->entry[dict->count++] = (ft_jinja_entry){ key, value };
}

/* ---- Questions ---------------------------------------------------------------------------- */

bool ft_jinja_truth(ft_jinja_value value)
{
    switch (value.kind) {
    case FT_JINJA_MISSING:
    case FT_JINJA_UNDEFINED:
    case FT_JINJA_NONE:
        return false;
    case FT_JINJA_BOOL:
        return value.boolean;
    case FT_JINJA_INT:
        return value.integer != 0;
    case FT_JINJA_FLOAT:
        return value.number != 0;
    case FT_JINJA_STRING:
        return value.string->bytes > 0;
    case FT_JINJA_LIST:
        return value.list->type == FT_JINJA_GENERATOR || value.list->count > 0;
    case FT_JINJA_DICT:
        return value.dict->count > 0;
    default:
        return true;
    }
}

bool ft_jinja_to_integer(ft_jinja_value value, int64_t *out)
{
    *out = value.kind == FT_JINJA_BOOL ? value.boolean : value.integer;
    return value.kind == FT_JINJA_BOOL || value.kind == FT_JINJA_INT;
}

bool ft_jinja_to_number(ft_jinja_value value, double *out)
{
    int64_t integer;
    if (value.kind == FT_JINJA_FLOAT)
        *out = value.number;
    else if (ft_jinja_to_integer(value, &integer))
        *out = (double) integer;
    else
        return false;
    return true;
}

static bool lists_equal(ft_jinja_run *run, const ft_jinja_list *a, const ft_jinja_list *b)
{
    if (a->type != b->type || a->type >= FT_JINJA_VIEW)
        return a == b;
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = ft_jinja_equal(run, a->item[i], b->item[i]);
    return equal;
}

static bool dicts_equal(ft_jinja_run *run, const ft_jinja_dict *a, const ft_jinja_dict *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        ft_jinja_value *other = ft_jinja_dict_get(run, b, a->entry[i].key);
        equal = other != NULL && ft_jinja_equal(run, a->entry[i].value, *other);
    }
    return equal;
}

static bool containers_equal(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b)
{
    ft_jinja_enter(run);
    ft_jinja_spend(run, 1);
    bool equal = a.kind == FT_JINJA_LIST ? lists_equal(run, a.list, b.list)
                                         : dicts_equal(run, a.dict, b.dict);
    ft_jinja_leave(run);
    return equal;
}

/* An integer that has no float of its own equals none. */
static bool integer_equals(int64_t integer, double number)
{
    return (double) integer == number && fabs(number) < 0x1p63 && (int64_t) number == integer;
}

bool ft_jinja_equal(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b)
{
    int64_t i, j;
    bool integers = ft_jinja_to_integer(a, &i), other = ft_jinja_to_integer(b, &j);
    if (integers && other)
        return i == j;
    if (a.kind == FT_JINJA_FLOAT && b.kind == FT_JINJA_FLOAT)
        return a.number == b.number;
    if ((integers && b.kind == FT_JINJA_FLOAT) || (other && a.kind == FT_JINJA_FLOAT))
        return integers ? integer_equals(i, b.number) : integer_equals(j, a.number);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case FT_JINJA_MISSING:
    case FT_JINJA_UNDEFINED:
    case FT_JINJA_NONE:
        return true;
    case FT_JINJA_STRING:
        return ft_jinja_string_equal(a.string, b.string);
    case FT_JINJA_LIST:
    case FT_JINJA_DICT:
        return containers_equal(run, a, b);
    default:
        return a.macro == b.macro; /* the same object */
    }
}

/* ---- Order -------------------------------------------------------------------------------- */

_Noreturn static void fail_order(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b)
{
    ft_jinja_require_defined(run, a);
    ft_jinja_require_defined(run, b);
    ft_jinja_fail(run, FT_EFORMAT, "values of types %s and %s have no order", ft_jinja_type_name(a),
                  ft_jinja_type_name(b));
}

/* The first elements that differ decide. */
static bool list_less(ft_jinja_run *run, const ft_jinja_list *a, const ft_jinja_list *b,
                      bool or_equal)
{
    ft_jinja_enter(run);
    ft_jinja_spend(run, 1);
    size_t i = 0, common = ft_min_size(a->count, b->count);
    while (i < common && ft_jinja_equal(run, a->item[i], b->item[i]))
        i++;
    bool less = i < common ? ft_jinja_less(run, a->item[i], b->item[i], or_equal)
                : or_equal ? a->count <= b->count
                           : a->count < b->count;
    ft_jinja_leave(run);
    return less;
}

bool ft_jinja_less(ft_jinja_run *run, ft_jinja_value a, ft_jinja_value b, bool or_equal)
{
    int64_t i, j;
    double x, y;
    if (ft_jinja_to_integer(a, &i) && ft_jinja_to_integer(b, &j))
        return or_equal ? i <= j : i < j;
    if (ft_jinja_to_number(a, &x) && ft_jinja_to_number(b, &y))
        return or_equal ? x <= y : x < y;
    if (a.kind == FT_JINJA_STRING && b.kind == FT_JINJA_STRING)
        return ft_jinja_string_compare(a.string, b.string) < or_equal;
    bool ordered = a.kind == FT_JINJA_LIST && b.kind == FT_JINJA_LIST &&
                   a.list->type == b.list->type && a.list->type <= FT_JINJA_TUPLE;
    if (!ordered)
        fail_order(run, a, b);
    return list_less(run, a.list, b.list, or_equal);
}
