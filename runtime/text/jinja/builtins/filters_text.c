/*
 * filters_text.c - filters that make a string.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/filters.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"
#include "runtime/text/unicode/unicode.h"

static ft_jinja_value string(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_text(ft_jinja_to_string(run, call->self));
}

static ft_jinja_value trim(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_text(ft_jinja_strip(run, ft_jinja_to_string(run, call->self),
                                        ft_jinja_arg_string(run, call->arg[0]), true, true));
}

static ft_jinja_value replace(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_text(ft_jinja_replace(
        run, ft_jinja_to_string(run, call->self), ft_jinja_to_string(run, call->arg[0]),
        ft_jinja_to_string(run, call->arg[1]), ft_jinja_arg_integer(run, call->arg[2], -1)));
}

#define CASE_FILTER(name, to)                                                                      \
    static ft_jinja_value name(ft_jinja_run *run, const ft_jinja_call *call)                       \
    {                                                                                              \
        return ft_jinja_text(ft_jinja_convert_case(run, ft_jinja_to_string(run, call->self), to)); \
    }
CASE_FILTER(lower, FT_JINJA_LOWER)
CASE_FILTER(upper, FT_JINJA_UPPER)
CASE_FILTER(title, FT_JINJA_WORDS)
CASE_FILTER(capitalize, FT_JINJA_CAPITALIZE)

/* Words of letters, digits and underscores. */
static ft_jinja_value wordcount(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *text = ft_jinja_to_string(run, call->self);
    const char *at = text->data, *end = at + text->bytes;
    int64_t count = 0;
    for (bool inside = false; at < end;) {
        bool word = ft_char_is_word(ft_utf8_decode_next(&at));
        count += word && !inside;
        inside = word;
    }
    ft_jinja_spend(run, text->bytes / 64);
    return ft_jinja_int(count);
}

/* ---- indent ------------------------------------------------------------------------------- */

static const ft_jinja_string *indentation(ft_jinja_run *run, ft_jinja_value width)
{
    if (width.kind == FT_JINJA_STRING)
        return width.string;
    int64_t spaces = ft_jinja_arg_integer(run, width, 4);
    return ft_jinja_repeat(run, ft_jinja_literal(run, " "), spaces).string;
}

static ft_jinja_value indent(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *text = ft_jinja_to_string(run, call->self),
                          *width = indentation(run, call->arg[0]);
    bool first = ft_jinja_arg_truth(call->arg[1], false),
         blank = ft_jinja_arg_truth(call->arg[2], false);
    ft_jinja_builder ended = { .run = run }, out = { .run = run };
    ft_jinja_put_string(&ended, text);
    ft_jinja_put_text(&ended, "\n");
    const ft_jinja_list *lines = ft_jinja_split_lines(run, ft_jinja_built(&ended), false);
    for (size_t i = 0; i < lines->count; i++) {
        const ft_jinja_string *line = lines->item[i].string;
        if (i > 0)
            ft_jinja_put_text(&out, "\n");
        if (i == 0 ? first : blank || line->bytes > 0)
            ft_jinja_put_string(&out, width);
        ft_jinja_put_string(&out, line);
    }
    return ft_jinja_text(ft_jinja_built(&out));
}

/* ---- format, join, tojson ----------------------------------------------------------------- */

static ft_jinja_value format(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_args *all = call->all;
    ft_jinja_list *values = ft_jinja_list_new(run, FT_JINJA_TUPLE, all->count);
    ft_jinja_dict *named = ft_jinja_dict_new(run, all->keywords);
    if (all->count > 0 && all->keywords > 0)
        ft_jinja_fail(run, FT_EFORMAT, "format takes positional or keyword arguments, not both");
    for (size_t i = 0; i < all->count; i++)
        ft_jinja_append(run, values, all->value[i]);
    for (size_t i = 0; i < all->keywords; i++)
        ft_jinja_dict_set(run, named, ft_jinja_literal(run, all->keyword[i].name),
                          all->keyword[i].value);
    return ft_jinja_text(ft_jinja_percent(run, ft_jinja_to_string(run, call->self),
                                          all->keywords > 0 ? ft_jinja_dict_value(named)
                                                            : ft_jinja_list_value(values)));
}

static ft_jinja_value join(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_list *list = ft_jinja_iterate(run, call->self);
    const ft_jinja_string *separator = ft_jinja_literal(run, "").string;
    ft_jinja_builder text = { .run = run };
    if (call->arg[0].kind != FT_JINJA_MISSING)
        separator = ft_jinja_to_string(run, call->arg[0]);
    for (size_t i = 0; i < list->count; i++) {
        ft_jinja_value item = list->item[i];
        if (call->arg[1].kind != FT_JINJA_MISSING && call->arg[1].kind != FT_JINJA_NONE)
            item = ft_jinja_path(run, item, call->arg[1], NULL);
        if (i > 0)
            ft_jinja_put_string(&text, separator);
        ft_jinja_put_value(&text, item);
    }
    ft_jinja_spend(run, list->count / 4);
    return ft_jinja_text(ft_jinja_built(&text));
}

/* The separators of json.dumps(): a pair of strings. */
static void read_separators(ft_jinja_run *run, ft_jinja_value arg, ft_jinja_json_style *style)
{
    if (arg.kind == FT_JINJA_MISSING || arg.kind == FT_JINJA_NONE)
        return;
    const ft_jinja_list *pair = ft_jinja_iterate(run, arg);
    if (pair->count != 2)
        ft_jinja_fail(run, FT_EFORMAT, "tojson: found %zu separators, expected 2", pair->count);
    style->item = ft_jinja_arg_string(run, pair->item[0]);
    style->colon = ft_jinja_arg_string(run, pair->item[1]);
}

static ft_jinja_value tojson(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_json_style style = { .ensure_ascii = ft_jinja_arg_truth(call->arg[0], false),
                                  .sort_keys = ft_jinja_arg_truth(call->arg[3], false) };
    ft_jinja_value width = call->arg[1];
    if (width.kind != FT_JINJA_MISSING && width.kind != FT_JINJA_NONE)
        style.indent = indentation(run, width);
    read_separators(run, call->arg[2], &style);
    return ft_jinja_text(ft_jinja_dump_json(run, call->self, &style));
}

const ft_jinja_builtin *ft_jinja_find_text_filter(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "capitalize", capitalize, "", 0 },
        { "format", format, "*", 0 },
        { "indent", indent, "width first blank", 0 },
        { "join", join, "d attribute", 0 },
        { "lower", lower, "", 0 },
        { "replace", replace, "old new count", 2 },
        { "string", string, "", 0 },
        { "title", title, "", 0 },
        { "tojson", tojson, "ensure_ascii indent separators sort_keys", 0 },
        { "trim", trim, "chars", 0 },
        { "upper", upper, "", 0 },
        { "wordcount", wordcount, "", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
