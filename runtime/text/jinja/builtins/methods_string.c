/*
 * methods_string.c - methods of strings that strip, search, replace, pad and ask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/builtins/methods.h"

#include "runtime/base/utf8.h"
#include "runtime/mem.h"
#include "runtime/text/jinja/values/text.h"

#include <string.h>

static const ft_jinja_string *required_string(ft_jinja_run *run, ft_jinja_value arg)
{
    const ft_jinja_string *string = ft_jinja_arg_string(run, arg);
    if (string == NULL)
        ft_jinja_fail(run, FT_EFORMAT, "an argument is None, expected a string");
    return string;
}

/* ---- Strip, replace ----------------------------------------------------------------------- */

static ft_jinja_value stripped(ft_jinja_run *run, const ft_jinja_call *call, bool start, bool end)
{
    return ft_jinja_text(
        ft_jinja_strip(run, call->self.string, ft_jinja_arg_string(run, call->arg[0]), start, end));
}

static ft_jinja_value strip(ft_jinja_run *run, const ft_jinja_call *call)
{
    return stripped(run, call, true, true);
}

static ft_jinja_value lstrip(ft_jinja_run *run, const ft_jinja_call *call)
{
    return stripped(run, call, true, false);
}

static ft_jinja_value rstrip(ft_jinja_run *run, const ft_jinja_call *call)
{
    return stripped(run, call, false, true);
}

static ft_jinja_value replace(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_text(ft_jinja_replace(
        run, call->self.string, required_string(run, call->arg[0]),
        required_string(run, call->arg[1]), ft_jinja_arg_integer(run, call->arg[2], -1)));
}

static bool has_affix(const ft_jinja_string *self, const ft_jinja_string *affix, bool at_end)
{
    if (affix->bytes > self->bytes)
        return false;
    const char *at = self->data + (at_end ? self->bytes - affix->bytes : 0);
    return memcmp(at, affix->data, affix->bytes) == 0;
}

static ft_jinja_value removeprefix(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *self = call->self.string, *prefix = required_string(run, call->arg[0]);
    size_t start = has_affix(self, prefix, false) ? prefix->bytes : 0;
    return ft_jinja_text(ft_jinja_substring(run, self, start, self->bytes));
}

static ft_jinja_value removesuffix(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *self = call->self.string, *suffix = required_string(run, call->arg[0]);
    size_t end = self->bytes - (has_affix(self, suffix, true) ? suffix->bytes : 0);
    return ft_jinja_text(ft_jinja_substring(run, self, 0, end));
}

/* ---- Search ------------------------------------------------------------------------------- */

/* The part that the arguments start and end select, as in self[start:end]. */
static const ft_jinja_string *selected(ft_jinja_run *run, const ft_jinja_call *call)
{
    ft_jinja_value bound[2];
    for (int i = 0; i < 2; i++)
        bound[i] =
            call->arg[i + 1].kind == FT_JINJA_MISSING ? FT_JINJA_NONE_VALUE : call->arg[i + 1];
    return ft_jinja_slice(run, call->self, bound[0], bound[1], FT_JINJA_NONE_VALUE).string;
}

/* One affix, or any of a tuple. */
static ft_jinja_value has_any_affix(ft_jinja_run *run, const ft_jinja_call *call, bool at_end)
{
    const ft_jinja_string *self = selected(run, call);
    if (!ft_jinja_is_list(call->arg[0], FT_JINJA_TUPLE))
        return ft_jinja_bool(has_affix(self, required_string(run, call->arg[0]), at_end));
    const ft_jinja_list *affixes = call->arg[0].list;
    bool has = false;
    for (size_t i = 0; i < affixes->count; i++)
        has |= has_affix(self, required_string(run, affixes->item[i]), at_end);
    return ft_jinja_bool(has);
}

static ft_jinja_value startswith(ft_jinja_run *run, const ft_jinja_call *call)
{
    return has_any_affix(run, call, false);
}

static ft_jinja_value endswith(ft_jinja_run *run, const ft_jinja_call *call)
{
    return has_any_affix(run, call, true);
}

static ft_jinja_value count(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *part = required_string(run, call->arg[0]), *self = selected(run, call);
    int64_t found = 0;
    if (part->bytes == 0)
        return ft_jinja_int((int64_t) ft_jinja_string_length(self) + 1);
    for (size_t at = 0; (at = ft_jinja_string_find(run, self, part, at)) != SIZE_MAX; found++)
        at += part->bytes;
    ft_jinja_spend(run, (size_t) found / 8);
    return ft_jinja_int(found);
}

/* The character where the argument occurs first in self[start:end], or -1. */
static int64_t find_character(ft_jinja_run *run, const ft_jinja_call *call)
{
    const ft_jinja_string *self = call->self.string, *part = selected(run, call);
    size_t at = ft_jinja_string_find(run, part, required_string(run, call->arg[0]), 0);
    if (at == SIZE_MAX)
        return -1;
    size_t start = part->bytes > 0 ? (size_t) (part->data - self->data) : 0;
    return (int64_t) ft_jinja_string_length(ft_jinja_substring(run, self, 0, start + at));
}

static ft_jinja_value find(ft_jinja_run *run, const ft_jinja_call *call)
{
    return ft_jinja_int(find_character(run, call));
}

static ft_jinja_value index_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    int64_t at = find_character(run, call);
    if (at < 0)
        ft_jinja_fail(run, FT_EFORMAT, "index(): substring not found");
    return ft_jinja_int(at);
}

/* ---- Letter case and padding -------------------------------------------------------------- */

#define CASE_METHOD(name, to)                                                                      \
    static ft_jinja_value name(ft_jinja_run *run, const ft_jinja_call *call)                       \
    {                                                                                              \
        return ft_jinja_text(ft_jinja_convert_case(run, call->self.string, to));                   \
    }
CASE_METHOD(lower, FT_JINJA_LOWER)
CASE_METHOD(upper, FT_JINJA_UPPER)
CASE_METHOD(title, FT_JINJA_TITLE)
CASE_METHOD(capitalize, FT_JINJA_CAPITALIZE)
CASE_METHOD(swapcase, FT_JINJA_SWAPCASE)

/* Put `left` and `right` copies of a fill character around the string. */
static ft_jinja_value padded(ft_jinja_run *run, const ft_jinja_call *call, int64_t left,
                             int64_t right)
{
    const ft_jinja_string *fill = ft_jinja_arg_string(run, call->arg[1]);
    ft_jinja_builder text = { .run = run };
    if (fill == NULL)
        fill = ft_jinja_literal(run, " ").string;
    if (ft_jinja_string_length(fill) != 1)
        ft_jinja_fail(run, FT_EFORMAT, "the fill of a padded string must be one character");
    if (left > 0)
        ft_jinja_put_string(&text, ft_jinja_repeat(run, ft_jinja_text(fill), left).string);
    ft_jinja_put_string(&text, call->self.string);
    if (right > 0)
        ft_jinja_put_string(&text, ft_jinja_repeat(run, ft_jinja_text(fill), right).string);
    return ft_jinja_text(ft_jinja_built(&text));
}

static int64_t padding_of(ft_jinja_run *run, const ft_jinja_call *call)
{
    int64_t width = ft_jinja_arg_integer(run, call->arg[0], 0),
            length = (int64_t) ft_jinja_string_length(call->self.string);
    return width > length ? width - length : 0;
}

static ft_jinja_value ljust(ft_jinja_run *run, const ft_jinja_call *call)
{
    return padded(run, call, 0, padding_of(run, call));
}

static ft_jinja_value rjust(ft_jinja_run *run, const ft_jinja_call *call)
{
    return padded(run, call, padding_of(run, call), 0);
}

/* The odd character goes to the left if the width is odd. */
static ft_jinja_value center(ft_jinja_run *run, const ft_jinja_call *call)
{
    int64_t padding = padding_of(run, call), width = ft_jinja_arg_integer(run, call->arg[0], 0),
            left = padding / 2 + (padding & width & 1);
    return padded(run, call, left, padding - left);
}

/* ---- Questions ---------------------------------------------------------------------------- */

typedef enum { ALPHA, DIGIT, NUMERIC, ALNUM, SPACE, ASCII } character_class;

static bool is_in(uint32_t c, character_class class)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t) c);
    bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO,
         number = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
    switch (class) {
    case ALPHA:
        return letter;
    case DIGIT:
        return category == UTF8PROC_CATEGORY_ND;
    case NUMERIC:
        return number;
    case ALNUM:
        return letter || number;
    case SPACE:
        return ft_jinja_is_space(c);
    default:
        return c < 0x80;
    }
}

/* Whether the string has characters, and all are of a class. */
static ft_jinja_value all_in(const ft_jinja_call *call, character_class class)
{
    const char *at = call->self.string->data, *end = at + call->self.string->bytes;
    bool all = at < end || class == ASCII;
    while (all && at < end)
        all = is_in(ft_utf8_decode_next(&at), class);
    return ft_jinja_bool(all);
}

#define CLASS_METHOD(name, class)                                                                  \
    static ft_jinja_value name(ft_jinja_run *run, const ft_jinja_call *call)                       \
    {                                                                                              \
        ft_jinja_spend(run, call->self.string->bytes / 64);                                        \
        return all_in(call, class);                                                                \
    }
CLASS_METHOD(is_alpha, ALPHA)
CLASS_METHOD(is_digit, DIGIT)
CLASS_METHOD(is_numeric, NUMERIC)
CLASS_METHOD(is_alnum, ALNUM)
CLASS_METHOD(is_space, SPACE)
CLASS_METHOD(is_ascii, ASCII)

/* Whether it has a letter with a case, and all of them have this one. */
static ft_jinja_value has_case(ft_jinja_run *run, const ft_jinja_call *call,
                               utf8proc_category_t wanted)
{
    const char *at = call->self.string->data, *end = at + call->self.string->bytes;
    bool some = false, others = false;
    ft_jinja_spend(run, call->self.string->bytes / 64);
    while (at < end) {
        utf8proc_category_t category =
            utf8proc_category((utf8proc_int32_t) ft_utf8_decode_next(&at));
        some |= category == wanted;
        others |= category != wanted && category >= UTF8PROC_CATEGORY_LU &&
                  category <= UTF8PROC_CATEGORY_LT;
    }
    return ft_jinja_bool(some && !others);
}

static ft_jinja_value is_lower(ft_jinja_run *run, const ft_jinja_call *call)
{
    return has_case(run, call, UTF8PROC_CATEGORY_LL);
}

static ft_jinja_value is_upper(ft_jinja_run *run, const ft_jinja_call *call)
{
    return has_case(run, call, UTF8PROC_CATEGORY_LU);
}

/* Methods without a function exist in Python and are refused. */
const ft_jinja_builtin *ft_jinja_find_string_method(const char *name, size_t bytes)
{
    static const ft_jinja_builtin table[] = {
        { "capitalize", capitalize, "", 0 },
        { "casefold", NULL, "", 0 },
        { "center", center, "width fillchar", 1 },
        { "count", count, "sub start end", 1 },
        { "encode", NULL, "", 0 },
        { "endswith", endswith, "suffix start end", 1 },
        { "expandtabs", NULL, "", 0 },
        { "find", find, "sub start end", 1 },
        { "format", NULL, "", 0 },
        { "format_map", NULL, "", 0 },
        { "index", index_of, "sub start end", 1 },
        { "isalnum", is_alnum, "", 0 },
        { "isalpha", is_alpha, "", 0 },
        { "isascii", is_ascii, "", 0 },
        { "isdecimal", is_digit, "", 0 },
        { "isdigit", is_digit, "", 0 },
        { "isidentifier", NULL, "", 0 },
        { "islower", is_lower, "", 0 },
        { "isnumeric", is_numeric, "", 0 },
        { "isprintable", NULL, "", 0 },
        { "isspace", is_space, "", 0 },
        { "istitle", NULL, "", 0 },
        { "isupper", is_upper, "", 0 },
        { "ljust", ljust, "width fillchar", 1 },
        { "lower", lower, "", 0 },
        { "lstrip", lstrip, "chars", 0 },
        { "maketrans", NULL, "", 0 },
        { "removeprefix", removeprefix, "prefix", 1 },
        { "removesuffix", removesuffix, "suffix", 1 },
        { "replace", replace, "old new count", 2 },
        { "rindex", NULL, "", 0 },
        { "rjust", rjust, "width fillchar", 1 },
        { "rstrip", rstrip, "chars", 0 },
        { "startswith", startswith, "prefix start end", 1 },
        { "strip", strip, "chars", 0 },
        { "swapcase", swapcase, "", 0 },
        { "title", title, "", 0 },
        { "translate", NULL, "", 0 },
        { "upper", upper, "", 0 },
        { "zfill", NULL, "", 0 },
    };
    return ft_jinja_find(table, FT_COUNT(table), name, bytes);
}
