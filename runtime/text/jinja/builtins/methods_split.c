/*
 * methods_split.c - methods that take strings apart and put them together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/methods.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"

static void add_part(ft_jinja_run *run, ft_jinja_list *list, const ft_jinja_string *string,
                     size_t start, size_t end)
{
    ft_jinja_append(run, list, ft_jinja_text(ft_jinja_substring(run, string, start, end)));
}

/* Where white space, or what is none, ends that begins at `at`. */
static size_t skip(const ft_jinja_string *string, size_t at, bool space)
{
    while (at < string->bytes) {
        const char *next = string->data + at;
        if (ft_jinja_is_space(ft_utf8_decode_next(&next)) != space)
            break;
        at = (size_t) (next - string->data);
    }
    return at;
}

static ft_jinja_list *split_words(ft_jinja_run *run, const ft_jinja_string *string, int64_t count)
{
    ft_jinja_list *words = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    ft_jinja_spend(run, string->bytes / 64);
    for (size_t at = skip(string, 0, true), end; at < string->bytes; at = skip(string, end, true)) {
        end = count == 0 ? string->bytes : skip(string, at, false);
        count--;
        add_part(run, words, string, at, end);
    }
    return words;
}

static ft_jinja_list *split_at(ft_jinja_run *run, const ft_jinja_string *string,
                               const ft_jinja_string *separator, int64_t count)
{
    ft_jinja_list *parts = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    size_t start = 0, found;
    while (count-- != 0) {
        found = ft_jinja_string_find(run, string, separator, start);
        if (found == SIZE_MAX)
            break;
        add_part(run, parts, string, start, found);
        start = found + separator->bytes;
    }
    add_part(run, parts, string, start, string->bytes);
    return parts;
}

static const ft_jinja_string *separator_of(ft_jinja_run *run, ft_jinja_value arg)
{
    const ft_jinja_string *separator = ft_jinja_arg_string(run, arg);
    if (separator != NULL && separator->bytes == 0)
        ft_jinja_fail(run, FT_EFORMAT, "the separator is empty");
    return separator;
}

static ft_jinja_value split(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *separator = separator_of(run, call->arg[0]);
    int64_t count = ft_jinja_arg_integer(run, call->arg[1], -1);
    return ft_jinja_list_value(separator == NULL
                                   ? split_words(run, call->self.string, count)
                                   : split_at(run, call->self.string, separator, count));
}

/* Where `part` occurs last before `end`; SIZE_MAX: nowhere. */
static size_t find_last(ft_jinja_run *run, const ft_jinja_string *string,
                        const ft_jinja_string *part, size_t end)
{
    ft_jinja_string head = *string;
    size_t last = SIZE_MAX, at = 0;
    head.bytes = end;
    while (at <= end && (at = ft_jinja_string_find(run, &head, part, at)) != SIZE_MAX) {
        last = at;
        at += at < end ? ft_jinja_char_bytes(string, at) : 1;
        ft_jinja_spend(run, 1);
    }
    return last;
}

/* The first parts stay together: the same as split() but for a limit. */
static ft_jinja_value rsplit(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *separator = separator_of(run, call->arg[0]), *self = call->self.string;
    int64_t count = ft_jinja_arg_integer(run, call->arg[1], -1);
    if (count < 0)
        return split(run, call);
    if (separator == NULL)
        ft_jinja_fail(run, FT_EUNSUPPORTED,
                      "rsplit() with a limit but without a separator is not supported in chat "
                      "templates");
    ft_jinja_list *parts = ft_jinja_list_new(run, FT_JINJA_PLAIN_LIST, 0);
    size_t end = self->bytes, found;
    while (count-- != 0 && (found = find_last(run, self, separator, end)) != SIZE_MAX) {
        add_part(run, parts, self, found + separator->bytes, end);
        end = found;
    }
    add_part(run, parts, self, 0, end);
    for (size_t i = 0, k = parts->count - 1; i < k; i++, k--) {
        ft_jinja_value swapped = parts->item[i];
        parts->item[i] = parts->item[k];
        parts->item[k] = swapped;
    }
    return ft_jinja_list_value(parts);
}

/* A tuple of what is before the separator, the separator, and what is after it. */
static ft_jinja_value part_at(ft_jinja_run *run, const ft_jinja_call *call, bool last)
{
    const ft_jinja_string *separator = separator_of(run, call->arg[0]), *self = call->self.string;
    ft_jinja_list *parts = ft_jinja_list_new(run, FT_JINJA_TUPLE, 3);
    if (separator == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "partition() needs a separator");
    size_t found = last ? find_last(run, self, separator, self->bytes)
                        : ft_jinja_string_find(run, self, separator, 0);
    size_t missing = last ? 0 : self->bytes, end = found + separator->bytes;
    if (found == SIZE_MAX)
        found = end = missing;
    add_part(run, parts, self, 0, found);
    add_part(run, parts, self, found, end);
    add_part(run, parts, self, end, self->bytes);
    return ft_jinja_list_value(parts);
}

static ft_jinja_value partition(ft_jinja_run *run, const ft_jinja_call *call)
{
    return part_at(run, call, false);
}

static ft_jinja_value rpartition(ft_jinja_run *run, const ft_jinja_call *call)
{
    return part_at(run, call, true);
}

static ft_jinja_value splitlines(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_list_value(
        ft_jinja_split_lines(run, call->self.string, ft_jinja_arg_truth(call->arg[0], false)));
}

static ft_jinja_value join(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->arg[0]);
    ft_jinja_builder text = { .run = run };
    for (size_t i = 0; i < list->count; i++) {
        if (list->item[i].kind != FT_JINJA_STRING)
            ft_jinja_fail(run, FT_EFORMAT, "join(): element %zu is of type %s, expected a string",
                          i, ft_jinja_type_name(list->item[i]));
        if (i > 0)
            ft_jinja_put_string(&text, call->self.string);
        ft_jinja_put_string(&text, list->item[i].string);
    }
    return ft_jinja_text(ft_jinja_built(&text));
}

/* Python's str.rfind() and rindex(), which count characters. */
static ft_jinja_value rfind(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *part = ft_jinja_arg_string(run, call->arg[0]);
    if (part == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "rfind() needs a string");
    size_t at = find_last(run, call->self.string, part, call->self.string->bytes);
    if (at == SIZE_MAX)
        return ft_jinja_int(-1);
    const ft_jinja_string *before = ft_jinja_substring(run, call->self.string, 0, at);
    return ft_jinja_int((int64_t) ft_jinja_string_length(before));
}

const ft_jinja_builtin *ft_jinja_find_split_method(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "join", join, "iterable", 1 },
        { "partition", partition, "sep", 1 },
        { "rfind", rfind, "sub", 1 },
        { "rpartition", rpartition, "sep", 1 },
        { "rsplit", rsplit, "sep maxsplit", 0 },
        { "split", split, "sep maxsplit", 0 },
        { "splitlines", splitlines, "keepends", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
