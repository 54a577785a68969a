/*
 * sequence.c - length, iteration, containment, indices and slices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/utf8.h"
#include "runtime/text/jinja/values/value.h"

bool ft_jinja_length(ft_jinja_value value, size_t *out)
{
    switch (value.kind) {
    case FT_JINJA_UNDEFINED:
        *out = 0;
        return true;
    case FT_JINJA_STRING:
        *out = ft_jinja_string_length(value.string);
        return true;
    case FT_JINJA_LIST:
        *out = value.list->count;
        return value.list->type != FT_JINJA_GENERATOR;
    case FT_JINJA_DICT:
        *out = value.dict->count;
        return true;
    default:
        return false;
    }
}

/* ---- Iteration ---------------------------------------------------------------------------- */

static ft_jinja_list *characters(ft_jinja_run *run, const ft_jinja_string *string)
{
    ft_jinja_list *list =
        ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, ft_jinja_string_length(string));
    for (size_t at = 0, next; at < string->bytes; at = next) {
        next = at + ft_jinja_char_bytes(string, at);
        ft_jinja_append(run, list, ft_jinja_text(ft_jinja_substring(run, string, at, next)));
    }
    ft_jinja_spend(run, list->count / 4);
    return list;
}

static ft_jinja_list *keys(ft_jinja_run *run, const ft_jinja_dict *dict)
{
    ft_jinja_list *list = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, dict->count);
    for (size_t i = 0; i < dict->count; i++)
        ft_jinja_append(run, list, dict->entry[i].key);
    ft_jinja_spend(run, list->count / 4);
    return list;
}

/* What is left of a generator. */
static ft_jinja_list *take(ft_jinja_run *run, ft_jinja_list *generator)
{
    ft_jinja_list *taken = FT_JINJA_NEW(run, ft_jinja_list);
    *taken = *generator;
    taken->type = FT_JINJA_PLAIN_LIST;
    *generator = (ft_jinja_list){ .type = FT_JINJA_GENERATOR };
    return taken;
}

ft_jinja_list *ft_jinja_elements(ft_jinja_run *run, ft_jinja_value value)
{
    switch (value.kind) {
    case FT_JINJA_UNDEFINED:
        return ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    case FT_JINJA_STRING:
        return characters(run, value.string);
    case FT_JINJA_LIST:
        return value.list->type == FT_JINJA_GENERATOR ? take(run, value.list) : value.list;
    case FT_JINJA_DICT:
        return keys(run, value.dict);
    default:
        return NULL;
    }
}

ft_jinja_list *ft_jinja_iterate(ft_jinja_run *run, ft_jinja_value value)
{
    ft_jinja_list *list = ft_jinja_elements(run, value);
    if (list == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "'%s' object is not iterable", ft_jinja_type_name(value));
    return list;
}

static bool string_contains(ft_jinja_run *run, const ft_jinja_string *string, ft_jinja_value part)
{
    ft_jinja_require_defined(run, part);
    if (part.kind != FT_JINJA_STRING)
        ft_jinja_fail(run, FT_EFORMAT,
                      "'in' with a string on its right needs one on its left, not %s",
                      ft_jinja_type_name(part));
    return ft_jinja_string_find(run, string, part.string, 0) != SIZE_MAX;
}

bool ft_jinja_contains(ft_jinja_run *run, ft_jinja_value container, ft_jinja_value item)
{
    if (container.kind == FT_JINJA_STRING)
        return string_contains(run, container.string, item);
    if (container.kind == FT_JINJA_DICT)
        return ft_jinja_dict_get(run, container.dict, item) != NULL;
    const ft_jinja_list *list = ft_jinja_iterate(run, container);
    ft_jinja_spend(run, list->count / 8);
    for (size_t i = 0; i < list->count; i++)
        if (ft_jinja_equal(run, list->item[i], item))
            return true;
    return false;
}

/* ---- Indices and slices ------------------------------------------------------------------- */

static ft_jinja_value character(ft_jinja_run *run, const ft_jinja_string *string, size_t index)
{
    ft_jinja_spend(run, index / 64);
    size_t at = ft_jinja_string_offset(string, index);
    return ft_jinja_text(ft_jinja_substring(run, string, at, at + ft_jinja_char_bytes(string, at)));
}

ft_jinja_value ft_jinja_index(ft_jinja_run *run, ft_jinja_value value, int64_t index)
{
    size_t length = 0;
    bool indexed = value.kind == FT_JINJA_STRING ||
                   (value.kind == FT_JINJA_LIST && value.list->type <= FT_JINJA_RANGE);
    if (indexed && ft_jinja_length(value, &length) && index < 0)
        index += (int64_t) length;
    if (index < 0 || (uint64_t) index >= length)
        return ft_jinja_undefined(run, "'%s' object has no element %lld", ft_jinja_type_name(value),
                                  (long long) index);
    return value.kind == FT_JINJA_STRING ? character(run, value.string, (size_t) index)
                                         : value.list->item[index];
}

/* A bound of a slice within [low, high]; negative ones count from the end. */
static int64_t bound_of(ft_jinja_run *run, ft_jinja_value bound, int64_t length, int64_t low,
                        int64_t high, int64_t otherwise)
{
    int64_t at;
    if (bound.kind == FT_JINJA_NONE)
        return otherwise;
    ft_jinja_require_defined(run, bound);
    if (!ft_jinja_to_integer(bound, &at))
        ft_jinja_fail(run, FT_EFORMAT, "a slice has a bound of type %s, expected an integer",
                      ft_jinja_type_name(bound));
    if (at < 0)
        at = at < -length ? -1 : at + length;
    return at < low ? low : at > high ? high : at;
}

/* Characters [start, stop) without a copy. */
static ft_jinja_value slice_string(ft_jinja_run *run, const ft_jinja_string *string, int64_t start,
                                   int64_t stop)
{
    ft_jinja_spend(run, string->bytes / 64);
    if (start >= stop)
        return ft_jinja_literal(run, "");
    size_t from = ft_jinja_string_offset(string, (size_t) start);
    size_t to = ft_jinja_string_offset(string, (size_t) stop);
    return ft_jinja_text(ft_jinja_substring(run, string, from, to));
}

static ft_jinja_value joined(ft_jinja_run *run, const ft_jinja_list *parts)
{
    ft_jinja_builder text = { .run = run };
    for (size_t i = 0; i < parts->count; i++)
        ft_jinja_put_string(&text, parts->item[i].string);
    return ft_jinja_text(ft_jinja_built(&text));
}

static ft_jinja_value slice_items(ft_jinja_run *run, ft_jinja_value value, int64_t start,
                                  int64_t stop, int64_t step)
{
    const ft_jinja_list *all = ft_jinja_iterate(run, value);
    ft_jinja_list_type type = value.kind == FT_JINJA_LIST ? value.list->type : FT_JINJA_PLAIN_LIST;
    ft_jinja_list *some = ft_jinja_list_new(run, type, 0);
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
        ft_jinja_append(run, some, all->item[i]);
        if (__builtin_add_overflow(i, step, &(int64_t){ 0 }))
            break;
    }
    ft_jinja_spend(run, some->count / 8);
    return value.kind == FT_JINJA_STRING ? joined(run, some) : ft_jinja_list_value(some);
}

ft_jinja_value ft_jinja_slice(ft_jinja_run *run, ft_jinja_value value, ft_jinja_value start,
                              ft_jinja_value stop, ft_jinja_value step)
{
    size_t length = 0;
    int64_t stride = 1;
    ft_jinja_require_defined(run, value);
    bool sliced = value.kind == FT_JINJA_STRING ||
                  (value.kind == FT_JINJA_LIST && value.list->type <= FT_JINJA_RANGE);
    if (!sliced)
        return ft_jinja_undefined(run, "'%s' object has no slices", ft_jinja_type_name(value));
    if (step.kind != FT_JINJA_NONE && (!ft_jinja_to_integer(step, &stride) || stride == 0))
        ft_jinja_fail(run, FT_EFORMAT, "a slice has the step %s, expected an integer but not 0",
                      step.kind == FT_JINJA_INT ? "0" : ft_jinja_type_name(step));
    ft_jinja_length(value, &length);
    int64_t n = (int64_t) length, low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1;
    int64_t first = bound_of(run, start, n, low, high, stride > 0 ? 0 : high);
    int64_t last = bound_of(run, stop, n, low, high, stride > 0 ? high : -1);
    return value.kind == FT_JINJA_STRING && stride == 1
               ? slice_string(run, value.string, first, last)
               : slice_items(run, value, first, last, stride);
}

static ft_jinja_value repeat_string(ft_jinja_run *run, const ft_jinja_string *string, int64_t count)
{
    ft_jinja_builder text = { .run = run };
    for (int64_t i = 0; i < count; i++)
        ft_jinja_put_string(&text, string);
    return ft_jinja_text(ft_jinja_built(&text));
}

ft_jinja_value ft_jinja_repeat(ft_jinja_run *run, ft_jinja_value sequence, int64_t count)
{
    size_t length = 0;
    if (!ft_jinja_length(sequence, &length) || length == 0 || count < 0)
        count = 0;
    ft_jinja_spend(run, (size_t) count);
    if (sequence.kind == FT_JINJA_STRING)
        return repeat_string(run, sequence.string, count);
    ft_jinja_list *list = ft_jinja_list_new(run, sequence.list->type, 0);
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < length; k++)
            ft_jinja_append(run, list, sequence.list->item[k]);
    return ft_jinja_list_value(list);
}
