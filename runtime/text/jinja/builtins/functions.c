/*
 * functions.c - the functions of a chat template's environment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/builtin.h"

#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"

#include <string.h>
#include <time.h>

/* ---- range -------------------------------------------------------------------------------- */

enum { MAX_RANGE = 100000 }; /* the limit of jinja2's sandbox */

static ft_jinja_value range(ft_jinja_run *run, const ft_jinja_call *call)
{
    bool one = call->arg[1].kind == FT_JINJA_MISSING;
    int64_t start = one ? 0 : ft_jinja_arg_integer(run, call->arg[0], 0),
            stop = ft_jinja_arg_integer(run, call->arg[one ? 0 : 1], 0),
            step = ft_jinja_arg_integer(run, call->arg[2], 1);
    ft_jinja_list *list = ft_jinja_list_new(run, FT_JINJA_RANGE, 0);
    if (step == 0)
        ft_jinja_fail(run, FT_EFORMAT, "range(): the step is 0");
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        ft_jinja_append(run, list, ft_jinja_int(i));
        if (list->count > MAX_RANGE)
            ft_jinja_fail(run, FT_ELIMIT, "range() has more than %d numbers", MAX_RANGE);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    ft_jinja_spend(run, list->count / 4);
    return ft_jinja_list_value(list);
}

/* ---- namespace, dict ---------------------------------------------------------------------- */

static void add_pairs(ft_jinja_run *run, ft_jinja_dict *dict, ft_jinja_value from)
{
    bool mapping = from.kind == FT_JINJA_DICT;
    const ft_jinja_list *list = mapping ? NULL : ft_jinja_iterate(run, from);
    for (size_t i = 0; mapping && i < from.dict->count; i++)
        ft_jinja_dict_set(run, dict, from.dict->entry[i].key, from.dict->entry[i].value);
    for (size_t i = 0; !mapping && i < list->count; i++) {
        const ft_jinja_list *pair = ft_jinja_iterate(run, list->item[i]);
        if (pair->count != 2)
            ft_jinja_fail(run, FT_EFORMAT, "dict(): element %zu has %zu elements, expected 2", i,
                          pair->count);
        ft_jinja_dict_set(run, dict, pair->item[0], pair->item[1]);
    }
}

static ft_jinja_dict *new_dict(ft_jinja_run *run, const ft_jinja_args *args)
{
    ft_jinja_dict *dict = ft_jinja_dict_new(run, args->keywords);
    if (args->count > 1)
        ft_jinja_fail(run, FT_EFORMAT, "a dict is made of at most 1 value, found %zu", args->count);
    if (args->count == 1)
        add_pairs(run, dict, args->value[0]);
    for (size_t i = 0; i < args->keywords; i++)
        ft_jinja_dict_set(run, dict, ft_jinja_literal(run, args->keyword[i].name),
                          args->keyword[i].value);
    return dict;
}

static ft_jinja_value dict_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_dict_value(new_dict(run, call->all));
}

static ft_jinja_value namespace_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_value value = ft_jinja_dict_value(new_dict(run, call->all));
    value.kind = FT_JINJA_NAMESPACE;
    return value;
}

/* ---- raise_exception, strftime_now -------------------------------------------------------- */

static ft_jinja_value raise_exception(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *why = ft_jinja_to_string(run, call->arg[0]);
    ft_jinja_fail(run, FT_EARG, "the template refuses these messages: %.*s",
                  (int) ft_min_size(why->bytes, 600), why->data);
}

/* What Python's datetime without a time zone writes differently than strftime(). */
static const ft_jinja_string *prepare_format(ft_jinja_run *run, const ft_jinja_string *format)
{
    ft_jinja_builder text = { .run = run };
    for (size_t i = 0; i < format->bytes; i++) {
        bool directive = format->data[i] == '%' && i + 1 < format->bytes;
        char letter = directive ? format->data[i + 1] : '\0';
        if (letter == 'f')
            ft_jinja_put_text(&text, "000000");
        else if (letter != 'z' && letter != 'Z')
            ft_jinja_put(&text, format->data + i, directive ? 2 : 1, false);
        i += directive;
    }
    ft_jinja_put(&text, "", 1, false);
    return ft_jinja_built(&text);
}

/* The format comes from the template, and strftime() writes nothing but the date. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static ft_jinja_value strftime_now(ft_jinja_run *run, const ft_jinja_call *call)
{
    char text[1024];
    struct tm now;
    time_t seconds = (time_t) run->date;
    const ft_jinja_string *format = ft_jinja_arg_string(run, call->arg[0]);
    if (format == NULL || localtime_r(&seconds, &now) == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "strftime_now(): found no format or no valid date");
    size_t bytes = strftime(text, sizeof text, prepare_format(run, format)->data, &now);
    bool message = format->mask != NULL || format->message;
    return ft_jinja_text(ft_jinja_string_new(run, ft_jinja_copy(run, text, bytes), bytes, message));
}

/* ---- The table ---------------------------------------------------------------------------- */

/* Functions of jinja2 without a C function are refused. */
const ft_jinja_builtin *ft_jinja_find_function(const char *name)
{
    static const ft_jinja_builtin table[] = {
        { "cycler", NULL, "", 0 },
        { "dict", dict_of, "*", 0 },
        { "joiner", NULL, "", 0 },
        { "lipsum", NULL, "", 0 },
        { "namespace", namespace_of, "*", 0 },
        { "raise_exception", raise_exception, "message", 1 },
        { "range", range, "start stop step", 1 },
        { "strftime_now", strftime_now, "format", 1 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, strlen(name));
}
